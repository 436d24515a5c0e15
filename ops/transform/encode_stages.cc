// SPDX-License-Identifier: Apache-2.0
// transformencode of a frame whose rows are on several ranks.
//
// Every rank looks at its own rows once. What the encoders learn of a column is put together so that it is
// what one process learns of all rows, in the order of the rows:
//
//   tokens      Each distinct one goes to the rank that its hash names, which keeps where it stands first;
//   from
//               there to all, once. Sorted by these places they have their codes.
//   the mode    How often each cell counts is added up there, too; the most frequent of each of these ranks
//   go
//               to all.
//   the mean    Exact sums, which are added up in any order.
//   bins        The least and the largest number; of equal height the numbers at some places, which samples
//   and
//               windows find (ops/cells/global_places.h).
//
// Then every rank encodes its rows. So what a rank holds beside these is bounded by the metadata, which every
// rank has in the end, and by the distinct cells of its own rows.
#include <algorithm>
#include <deque>
#include <string>
#include <tuple>
#include <utility>

#include "ops/base/arguments.h"
#include "ops/base/parallel.h"
#include "ops/cells/global_places.h"
#include "ops/text/java_hash_map.h"
#include "ops/transform/arguments.h"
#include "ops/transform/encode.h"
#include "ops/transform/number_summary.h"
#include "ops/transform/token_frames.h"

namespace heddle::ops {
namespace {

enum StageNumber { kLook, kMerge, kFind, kEncode, kGive };

// What travels between them, by the stage that makes it.
enum OfLook { kDistinct, kNumbers, kSamples, kSummaries, kTokensToOwners };
constexpr Reach kOfLook[] = {Reach::kHere, Reach::kHere, Reach::kAll, Reach::kAll, Reach::kParts};
enum OfMerge { kSameDistinct, kTokens, kModeCounts, kModeCells, kAllSummaries, kWindows };
constexpr Reach kOfMerge[] = {Reach::kHere, Reach::kAll,  Reach::kAll,
                              Reach::kHere, Reach::kHere, Reach::kParts};
enum OfFind { kKeptDistinct, kAllTokens, kFoundSummaries, kModes, kFoundNumbers };
constexpr Reach kOfFind[] = {Reach::kHere, Reach::kHere, Reach::kHere, Reach::kAll, Reach::kAll};
enum OfEncode { kRows, kMetadata, kReport };
constexpr Reach kOfEncode[] = {Reach::kHere, Reach::kHere, Reach::kAll};

// ---- What the spec asks of a column.

bool HasMode(const ColumnSpec& spec) { return spec.impute == ImputeMethod::kMode; }
bool HasCellDictionary(const ColumnSpec& spec) { return spec.encoder == Encoder::kRecode || HasMode(spec); }
bool HasHeights(const ColumnSpec& spec) {
  return spec.encoder == Encoder::kBin && spec.bin_method == BinMethod::kEqualHeight;
}

// Dictionaries are numbered: two for each column.
int64_t CellsOf(size_t column) { return 2 * static_cast<int64_t>(column); }
int64_t WordsIn(size_t column) { return 2 * static_cast<int64_t>(column) + 1; }
size_t ColumnOf(const Token& token) { return static_cast<size_t>(token.dictionary / 2); }
bool IsWord(const Token& token) { return token.dictionary % 2 != 0; }
// Whether a code is given for it.
bool HasCode(const Token& token, const TransformSpec& spec) {
  const Encoder encoder = spec.columns[ColumnOf(token)].encoder;
  return IsWord(token) ? encoder == Encoder::kBagOfWords : encoder == Encoder::kRecode;
}
bool CountsForMode(const Token& token, const TransformSpec& spec) {
  return !IsWord(token) && HasMode(spec.columns[ColumnOf(token)]) && token.count > 0;
}

// ---- Numbers of columns that are binned by height: rows of a column and a number, in this order.

constexpr size_t kKeys = 2;
constexpr KeyOrder kOrder{};

class SortedNumbers final : public RankElements {
 public:
  explicit SortedNumbers(const Matrix& rows) : rows_(rows) {}
  int64_t count() const override { return rows_.rows(); }
  double Key(int64_t element, size_t key) const override {
    return rows_.data()[static_cast<int64_t>(kKeys) * element + static_cast<int64_t>(key)];
  }

 private:
  const Matrix& rows_;
};

// The places that are asked for among the numbers of all columns, which stand behind each other.
std::vector<double> PlacesOf(const TransformSpec& spec, const std::vector<NumberSummary>& columns) {
  std::vector<double> places;
  int64_t before = 0;
  for (size_t j = 0; j < columns.size(); ++j) {
    if (!HasHeights(spec.columns[j])) continue;
    for (const int64_t place : HeightPlaces(spec.columns[j], columns[j].range.count))
      places.push_back(static_cast<double>(before + place));
    before += columns[j].range.count;
  }
  return places;
}

int64_t NumberCount(const TransformSpec& spec, const std::vector<NumberSummary>& columns) {
  int64_t count = 0;
  for (size_t j = 0; j < columns.size(); ++j)
    if (HasHeights(spec.columns[j])) count += columns[j].range.count;
  return count;
}

// ---- The first stage: what this rank finds in a column.

struct Found {
  NumberSummary summary;
  DistinctCells distinct;      // Of a column that has a dictionary of cells.
  std::vector<double> sorted;  // The numbers of a column that is binned by height.
  std::vector<Token> tokens;   // Of both dictionaries. Their texts stand in the frame, or in `texts`.
  std::deque<std::string> texts;
  Status status;
};

void AddCells(const ColumnInput& input, size_t column, Found* found) {
  const DistinctCells& distinct = *input.distinct;
  std::vector<int64_t> counts(static_cast<size_t>(distinct.count()), 0);
  if (HasMode(input.spec)) counts = CountsForMode(input);
  const bool has_texts = input.cells.storage() == ColumnStorage::kTexts;
  for (int64_t k = 0; k < distinct.count(); ++k) {
    const auto index = static_cast<size_t>(k);
    const std::string_view text =
        has_texts ? input.cells.TextAt(distinct.first_rows[index])
                  : std::string_view(found->texts.emplace_back(distinct.TextOf(input.cells, k)));
    found->tokens.push_back(
        {.dictionary = CellsOf(column), .index = k, .count = counts[index], .text = text});
  }
}

// Cells that are no numbers are told as such: the stage that encodes finds them again.
Status LookAtNumbers(const ColumnInput& input, Found* found) {
  NumberSummary& summary = found->summary;
  const auto has_numbers = [&](const Status& status) {
    summary.has_failed |= !status.ok();
    return status.ok();
  };
  if (HasMean(input.spec)) {
    Result<MeanParts> parts = SumForMean(input);
    if (has_numbers(parts.status())) summary.mean = *parts;
  }
  if (input.spec.encoder != Encoder::kBin) return OkStatus();
  Result<std::vector<double>> numbers = BinnedNumbers(input);
  if (!has_numbers(numbers.status()) || numbers->empty()) return OkStatus();
  const auto [min, max] = std::minmax_element(numbers->begin(), numbers->end());
  summary.range = {.count = static_cast<int64_t>(numbers->size()), .low = *min, .high = *max};
  if (!HasHeights(input.spec)) return OkStatus();
  found->sorted = *std::move(numbers);
  std::sort(found->sorted.begin(), found->sorted.end());
  return OkStatus();
}

Status LookAt(const KernelCall& call, const TransformSpec& spec, size_t j, Found* found) {
  const ColumnSpec& one = spec.columns[j];
  EncodedColumn column(call.node.op, call.inputs[kTarget]->frame(), one, static_cast<int64_t>(j));
  if (one.encoder == Encoder::kBagOfWords || HasCellDictionary(one))
    HEDDLE_RETURN_IF_ERROR(column.Find(call.context.cancelled));
  if (HasCellDictionary(one)) AddCells(column.input(), j, found);
  if (one.encoder == Encoder::kBagOfWords) {
    int64_t index = 0;
    for (const std::string& word : column.input().words->words)
      found->tokens.push_back(
          {.dictionary = WordsIn(j), .index = index++, .text = found->texts.emplace_back(word)});
  }
  if (HasCellDictionary(one)) found->distinct = std::move(column).TakeDistinct();
  return NeedsNumbers(one) ? LookAtNumbers(column.input(), found) : OkStatus();
}

// Which distinct cell each row holds, for the stage that encodes: a row for each column that has a dictionary
// of cells.
Result<Value> NumbersOfDistinct(const StageCall& call, const TransformSpec& spec,
                                const std::vector<Found>& columns) {
  const auto count = std::count_if(spec.columns.begin(), spec.columns.end(), HasCellDictionary);
  HEDDLE_ASSIGN_OR_RETURN(Matrix numbers, Matrix::Dense(count, call.inputs[kTarget]->frame().rows()));
  double* out = numbers.mutable_data();
  for (size_t j = 0; j < columns.size(); ++j)
    if (HasCellDictionary(spec.columns[j]))
      out = std::copy(columns[j].distinct.numbers.begin(), columns[j].distinct.numbers.end(), out);
  return Value(std::move(numbers));
}

std::vector<DistinctCells> DistinctCellsOf(const TransformSpec& spec, const Matrix& numbers) {
  std::vector<DistinctCells> columns(spec.columns.size());
  const double* next = numbers.data();
  for (size_t j = 0; j < columns.size(); ++j) {
    if (!HasCellDictionary(spec.columns[j])) continue;
    DistinctCells& one = columns[j];
    for (int64_t i = 0; i < numbers.columns(); ++i) {
      one.numbers.push_back(static_cast<int32_t>(*next++));
      if (one.numbers.back() == one.count()) one.first_rows.push_back(i);
    }
  }
  return columns;
}

Status SendTokens(const StageCall& call, const std::vector<Found>& columns, std::span<Value> outputs) {
  std::vector<std::vector<Token>> of_owner(static_cast<size_t>(call.ranks()));
  for (const Found& one : columns)
    for (Token token : one.tokens) {
      token.rank = call.rank;
      of_owner[static_cast<size_t>(OwnerOf(token, call.ranks()))].push_back(token);
    }
  for (size_t owner = 0; owner < of_owner.size(); ++owner) {
    HEDDLE_ASSIGN_OR_RETURN(outputs[kTokensToOwners + owner], FrameOfTokens(of_owner[owner]));
  }
  return OkStatus();
}

Status SendNumbers(const StageCall& call, const TransformSpec& spec, const std::vector<Found>& columns,
                   std::span<Value> outputs) {
  int64_t count = 0, heights = 0, bins = 0;
  for (size_t j = 0; j < columns.size(); ++j) {
    count += static_cast<int64_t>(columns[j].sorted.size());
    if (!HasHeights(spec.columns[j])) continue;
    ++heights;
    bins += spec.columns[j].bins;
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix sorted, Matrix::Dense(count, kKeys));
  double* out = sorted.mutable_data();
  for (size_t j = 0; j < columns.size(); ++j)
    for (const double number : columns[j].sorted) {
      *out++ = static_cast<double>(j);
      *out++ = number;
    }
  const SortedNumbers numbers(sorted);
  ElementRows samples(kKeys);
  const int64_t step = SampleStep(call.rows.Length() * heights, bins);
  int64_t sample_count = 0;
  for (int64_t i = 0; i < count; i += step, ++sample_count) samples.Add(numbers, i);
  HEDDLE_ASSIGN_OR_RETURN(outputs[kSamples], samples.ToMatrix());
  std::vector<NumberSummary> summaries;
  for (const Found& one : columns) summaries.push_back(one.summary);
  HEDDLE_ASSIGN_OR_RETURN(outputs[kSummaries], SummaryRow(spec, summaries, sample_count));
  outputs[kNumbers] = Value(std::move(sorted));
  return OkStatus();
}

Result<TransformSpec> SpecOf(const StageCall& call) {
  const Schema& schema = *call.inputs[kTarget]->frame().schema();
  HEDDLE_ASSIGN_OR_RETURN(TransformSpec spec, GivenSpec(call.WholeCall(), kSpec, schema));
  const Status fits = CheckEncoders(call.node, spec, /*has_embedding=*/false);
  if (!fits.ok()) return fits.WithCode(StatusCode::kFailedPrecondition);
  return spec;
}

Status Look(const StageCall& call, const TransformSpec& spec, std::span<Value> outputs) {
  const KernelCall whole = call.WholeCall();
  std::vector<Found> columns(spec.columns.size());
  ParallelFor(static_cast<int64_t>(columns.size()), 1, [&](int64_t begin, int64_t end) {
    for (auto j = static_cast<size_t>(begin); j < static_cast<size_t>(end); ++j)
      if (!IsCancelled(call.context.cancelled)) columns[j].status = LookAt(whole, spec, j, &columns[j]);
  });
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  for (const Found& one : columns) HEDDLE_RETURN_IF_ERROR(one.status);
  HEDDLE_ASSIGN_OR_RETURN(outputs[kDistinct], NumbersOfDistinct(call, spec, columns));
  HEDDLE_RETURN_IF_ERROR(SendNumbers(call, spec, columns, outputs));
  return SendTokens(call, columns, outputs);
}

// ---- The second: what the owner of a token knows of it goes to all, numbers between samples to who looks
// them up.

Status SendWindows(const StageCall& call, const TransformSpec& spec, std::span<Value> windows) {
  const Matrix& summaries = call.Received(kSummaries).matrix();
  std::vector<int64_t> samples;
  std::vector<double> counts;
  for (int32_t rank = 0; rank < call.ranks(); ++rank) {
    samples.push_back(SamplesOf(summaries, rank));
    counts.push_back(static_cast<double>(NumberCount(spec, SummariesOf(spec, summaries, rank))));
  }
  const std::vector<double> places = PlacesOf(spec, SummariesOfAll(spec, summaries));
  const PlaceBounds bounds(kOrder, kKeys, call.Received(kSamples).matrix(), samples, counts);
  const SortedNumbers numbers(call.Received(kNumbers).matrix());
  for (int32_t rank = 0; rank < call.ranks(); ++rank) {
    ElementRows rows(kKeys);
    const auto [first, last] = OwnPlaces(static_cast<int64_t>(places.size()), rank, call.ranks());
    for (int64_t i = first; i < last; ++i) {
      const auto before = [&](const std::optional<GlobalElement>& bound, int64_t otherwise) {
        return bound ? CountBefore(numbers, kOrder, call.rank, *bound) : otherwise;
      };
      const double place = places[static_cast<size_t>(i)];
      rows.AddWindow(numbers, before(bounds.Begin(place), 0), before(bounds.End(place), numbers.count()));
    }
    HEDDLE_ASSIGN_OR_RETURN(windows[static_cast<size_t>(rank)], rows.ToMatrix());
  }
  return OkStatus();
}

// For each column how many cells count for the mode, and how often the most frequent does.
struct ModeCount {
  int64_t cells = 0;
  int64_t most = 0;
};

Result<Value> ModeRow(const std::vector<ModeCount>& counts) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix row, Matrix::Dense(1, 2 * static_cast<int64_t>(counts.size())));
  double* out = row.mutable_data();
  for (const ModeCount& one : counts) {
    *out++ = static_cast<double>(one.cells);
    *out++ = static_cast<double>(one.most);
  }
  return Value(std::move(row));
}

std::vector<ModeCount> ModeCountsIn(const Matrix& rows) {
  std::vector<ModeCount> counts(static_cast<size_t>(rows.columns() / 2));
  for (int64_t i = 0; i < rows.rows(); ++i)
    for (size_t j = 0; j < counts.size(); ++j) {
      const double* const pair = rows.data() + i * rows.columns() + 2 * static_cast<int64_t>(j);
      counts[j].cells += static_cast<int64_t>(pair[0]);
      counts[j].most = std::max(counts[j].most, static_cast<int64_t>(pair[1]));
    }
  return counts;
}

Status Merge(const StageCall& call, const TransformSpec& spec, std::span<Value> outputs) {
  const std::vector<Token> merged = MergedTokens(call.Parts(kTokensToOwners));
  std::vector<Token> with_codes, of_mode;
  std::vector<ModeCount> counts(spec.columns.size());
  for (const Token& token : merged) {
    if (HasCode(token, spec)) with_codes.push_back(token);
    if (!CountsForMode(token, spec)) continue;
    ModeCount& count = counts[ColumnOf(token)];
    ++count.cells;
    count.most = std::max(count.most, token.count);
  }
  for (const Token& token : merged)
    if (CountsForMode(token, spec) && token.count == counts[ColumnOf(token)].most) of_mode.push_back(token);
  HEDDLE_ASSIGN_OR_RETURN(outputs[kTokens], FrameOfTokens(with_codes));
  HEDDLE_ASSIGN_OR_RETURN(outputs[kModeCells], FrameOfTokens(of_mode));
  HEDDLE_ASSIGN_OR_RETURN(outputs[kModeCounts], ModeRow(counts));
  outputs[kAllSummaries] = call.Received(kSummaries);
  outputs[kSameDistinct] = call.Received(kDistinct);
  return SendWindows(call, spec, outputs.subspan(kWindows));
}

// ---- The third: the most frequent cells of this rank, and the numbers that it looks up, go to all.

// By columns the one of several that a HashMap of Java with so many keys gives first: the least bucket, then
// in order of appearance. The bucket stands in place of the count.
std::vector<Token> FirstOfMaps(std::vector<Token> tokens) {
  const auto place = [](const Token& token) {
    return std::tuple(token.dictionary, token.count, token.rank, token.index);
  };
  std::sort(tokens.begin(), tokens.end(),
            [&](const Token& a, const Token& b) { return place(a) < place(b); });
  const auto end = std::unique(tokens.begin(), tokens.end(),
                               [](const Token& a, const Token& b) { return a.dictionary == b.dictionary; });
  tokens.erase(end, tokens.end());
  return tokens;
}

Status Find(const StageCall& call, const TransformSpec& spec, std::span<Value> outputs) {
  const std::vector<ModeCount> counts = ModeCountsIn(call.Received(kModeCounts).matrix());
  std::vector<Token> most;
  for (Token token : TokensOf(call.Received(kModeCells).frame())) {
    const ModeCount& count = counts[ColumnOf(token)];
    if (token.count != count.most) continue;
    token.count = JavaBucketOf(token.text, static_cast<size_t>(count.cells));
    most.push_back(token);
  }
  HEDDLE_ASSIGN_OR_RETURN(outputs[kModes], FrameOfTokens(FirstOfMaps(std::move(most))));
  const Matrix& summaries = call.Received(kAllSummaries).matrix();
  const std::vector<double> places = PlacesOf(spec, SummariesOfAll(spec, summaries));
  const auto [first, last] = OwnPlaces(static_cast<int64_t>(places.size()), call.rank, call.ranks());
  HEDDLE_ASSIGN_OR_RETURN(Matrix numbers, Matrix::Dense(last - first, 1));
  WindowReader reader(kOrder, kKeys, call.Parts(kWindows));
  for (int64_t i = first; i < last; ++i)
    numbers.mutable_data()[i - first] = reader.Next().At(places[static_cast<size_t>(i)]).keys[1];
  outputs[kFoundNumbers] = Value(std::move(numbers));
  outputs[kKeptDistinct] = call.Received(kSameDistinct);
  outputs[kAllTokens] = call.Received(kTokens);
  outputs[kFoundSummaries] = call.Received(kAllSummaries);
  return OkStatus();
}

// ---- The fourth: the metadata, and by these the rows.

// The tokens of each column that have a code, in the order of their codes.
void AddTokens(const Frame& frame, std::vector<ColumnMetadata>* metadata) {
  std::vector<Token> tokens = TokensOf(frame);
  std::sort(tokens.begin(), tokens.end(), [](const Token& a, const Token& b) {
    return std::tuple(a.dictionary, a.rank, a.index) < std::tuple(b.dictionary, b.rank, b.index);
  });
  for (const Token& token : tokens) (*metadata)[ColumnOf(token)].tokens.emplace_back(token.text);
}

Status Encode(const StageCall& call, const TransformSpec& spec, std::span<Value> outputs) {
  const Frame& frame = call.inputs[kTarget]->frame();
  const std::vector<NumberSummary> summaries = SummariesOfAll(spec, call.Received(kFoundSummaries).matrix());
  std::vector<ColumnMetadata> metadata(spec.columns.size());
  AddTokens(call.Received(kAllTokens).frame(), &metadata);
  std::vector<std::string> modes(spec.columns.size());
  for (const Token& token : FirstOfMaps(TokensOf(call.Received(kModes).frame())))
    modes[ColumnOf(token)] = token.text;
  const Matrix& numbers = call.Received(kFoundNumbers).matrix();
  std::span<const double> at_places(numbers.data(), static_cast<size_t>(numbers.rows()));
  std::vector<char> skipped(spec.columns.size(), 0);
  std::vector<PartFailure> failures;
  for (size_t j = 0; j < spec.columns.size(); ++j) {
    const ColumnSpec& one = spec.columns[j];
    const auto column = static_cast<int64_t>(j);
    const std::string name = frame.schema()->NameOf(column);
    Status status;
    if (one.impute)
      metadata[j].imputed = HasMean(one)   ? TextOfMean(summaries[j].mean)
                            : HasMode(one) ? modes[j]
                                           : one.constant;
    AddConstant(one, &metadata[j]);
    if (one.encoder == Encoder::kBin) {
      const size_t places = HeightPlaces(one, summaries[j].range.count).size();
      status = SetBins(call.node.op, name, one, summaries[j].range, at_places.first(places), &metadata[j]);
      at_places = at_places.subspan(places);
      failures.push_back({column, 1, status});
    }
    if (summaries[j].has_failed) {
      const EncodedColumn of_frame(call.node.op, frame, one, column);
      std::vector<double> own(static_cast<size_t>(frame.rows()));
      failures.push_back({column, 0, NumbersOf(of_frame.input(), own)});
    }
    skipped[j] = !status.ok() || summaries[j].has_failed;
  }
  HEDDLE_ASSIGN_OR_RETURN(
      EncodedRows rows, EncodeRows(call.WholeCall(), spec,
                                   {.skipped = skipped,
                                    .distinct = DistinctCellsOf(spec, call.Received(kKeptDistinct).matrix())},
                                   ResultsOf(call.node)[0].format, &metadata));
  failures.insert(failures.end(), rows.failures.begin(), rows.failures.end());
  HEDDLE_ASSIGN_OR_RETURN(outputs[kReport], ReportOf(failures));
  outputs[kRows] = std::move(rows.matrix);
  HEDDLE_ASSIGN_OR_RETURN(Frame meta, MetadataFrame(spec, *frame.schema(), metadata));
  outputs[kMetadata] = Value(std::move(meta));
  return OkStatus();
}

Status RunEncodeStage(const StageCall& call, std::span<Value> outputs) {
  if (call.stage == kGive) {
    HEDDLE_RETURN_IF_ERROR(FirstReportedFailure(call.Received(kReport)));
    outputs[0] = call.Received(kRows);
    outputs[1] = call.Received(kMetadata);
    return OkStatus();
  }
  HEDDLE_ASSIGN_OR_RETURN(const TransformSpec spec, SpecOf(call));
  switch (call.stage) {
    case kLook: return Look(call, spec, outputs);
    case kMerge: return Merge(call, spec, outputs);
    case kFind: return Find(call, spec, outputs);
    default: return Encode(call, spec, outputs);
  }
}

bool IsSized(const Node& node, std::span<const ValueInfo>) { return ResultsOf(node)[0].IsSized(); }
bool IsUnsized(const Node& node, std::span<const ValueInfo>) { return !ResultsOf(node)[0].IsSized(); }

// At most every cell is a token of its own.
double MovedBytes(const Node&, std::span<const ValueInfo> inputs, const RankGrid&) {
  return static_cast<double>(KnownBytes(inputs[kTarget]));
}

constexpr Stage kStages[] = {{.outputs = kOfLook, .reads_inputs = true},
                             {.outputs = kOfMerge, .reads_inputs = true},
                             {.outputs = kOfFind, .reads_inputs = true},
                             {.outputs = kOfEncode, .reads_inputs = true},
                             {}};
constexpr StagedForm kUneven = {.stages = kStages,
                                .result = StagedResult::kUneven,
                                .applies = IsUnsized,
                                .moved_bytes = MovedBytes,
                                .run = RunEncodeStage};

}  // namespace

constexpr StagedForm kEncodeStages = {.stages = kStages,
                                      .result = StagedResult::kSameRows,
                                      .other = &kUneven,
                                      .applies = IsSized,
                                      .moved_bytes = MovedBytes,
                                      .run = RunEncodeStage};

}  // namespace heddle::ops
