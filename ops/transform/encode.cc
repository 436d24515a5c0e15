// SPDX-License-Identifier: Apache-2.0
#include "ops/transform/encode.h"

#include <algorithm>
#include <atomic>

#include "core/environment/clock.h"
#include "core/memory/block_pool.h"
#include "core/memory/counted_heap.h"
#include "core/memory/memory_budget.h"
#include "ops/base/arguments.h"
#include "ops/base/parallel.h"
#include "ops/base/row_rules.h"
#include "ops/catalog.h"
#include "ops/cells/storage.h"
#include "ops/compressed/compression_records.h"
#include "ops/transform/arguments.h"
#include "ops/transform/encoded_groups.h"

namespace heddle::ops {
namespace {

// transformapply: kTarget, and these.
constexpr int kMetaOfApply = 1, kSpecOfApply = 2, kEmbedding = 3;

// CSR where at most four columns of five stay what they are: of each dummy-coded one, a row has one entry at
// most, of a bag of words few. Before the run nobody knows how many columns they become. Vectors of an
// embedding are dense.
Format FormatOf(const TransformSpec& spec) {
  const auto count = [&](auto is_counted) {
    return static_cast<int64_t>(std::count_if(spec.columns.begin(), spec.columns.end(), is_counted));
  };
  const int64_t sparse =
      count([](const ColumnSpec& one) { return one.dummycode || one.encoder == Encoder::kBagOfWords; });
  const int64_t vectors = count([](const ColumnSpec& one) { return one.encoder == Encoder::kWordEmbedding; });
  return sparse > 0 && vectors == 0 && static_cast<int64_t>(spec.columns.size()) <= 5 * sparse
             ? Format::kSparse
             : Format::kDense;
}

ValueInfo EncodedInfo(const ValueInfo& target, const std::optional<TransformSpec>& spec) {
  if (!spec) return ValueInfo::OfMatrix({kUnknown, kUnknown});
  return ValueInfo::OfMatrix({spec->HasOmit() ? kUnknown : target.shape.rows,
                              spec->HasOneColumnEach() ? target.shape.columns : kUnknown},
                             FormatOf(*spec));
}

Result<std::vector<ValueInfo>> InferEncode(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireFrame(context, kTarget, "target"));
  const ValueInfo& target = context.inputs[kTarget];
  HEDDLE_ASSIGN_OR_RETURN(const std::optional<TransformSpec> spec, InferSpec(context, kSpec, target.schema));
  if (spec) HEDDLE_RETURN_IF_ERROR(CheckEncoders(context.node, *spec, /*has_embedding=*/false));
  std::shared_ptr<Schema> texts;
  if (target.schema != nullptr) {
    texts = std::make_shared<Schema>(*target.schema);
    std::fill(texts->types.begin(), texts->types.end(), ColumnType::kString);
  }
  return std::vector<ValueInfo>{EncodedInfo(target, spec), ValueInfo::OfFrame(kUnknown, std::move(texts))};
}

Result<ValueInfo> InferApply(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireFrame(context, kTarget, "target"));
  HEDDLE_RETURN_IF_ERROR(RequireFrame(context, kMetaOfApply, "meta"));
  const ValueInfo& target = context.inputs[kTarget];
  HEDDLE_ASSIGN_OR_RETURN(const std::optional<TransformSpec> spec,
                          InferSpec(context, kSpecOfApply, target.schema));
  if (IsGiven(context.node, kEmbedding))
    HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, kEmbedding, "embedding"));
  if (spec) HEDDLE_RETURN_IF_ERROR(CheckEncoders(context.node, *spec, IsGiven(context.node, kEmbedding)));
  return EncodedInfo(target, spec);
}

Status Fit(const ColumnInput& input, ColumnMetadata* metadata) {
  HEDDLE_RETURN_IF_ERROR(FitImpute(input, metadata));
  if (input.spec.encoder == Encoder::kRecode) FitTokens(input, metadata);
  if (input.spec.encoder == Encoder::kBagOfWords) FitWords(input, metadata);
  if (input.spec.encoder == Encoder::kBin) return FitBins(input, metadata);
  return OkStatus();
}

Status Encode(const ColumnInput& input, const ColumnMetadata& metadata, std::span<double> codes,
              WordCounts* words) {
  switch (input.spec.encoder) {
    case Encoder::kPassThrough: return PassThrough(input, metadata, codes);
    case Encoder::kRecode:
    case Encoder::kWordEmbedding: return Recode(input, metadata, codes);
    case Encoder::kBin: return Bin(input, metadata, codes);
    case Encoder::kHash: return Hash(input, metadata, codes);
    case Encoder::kBagOfWords: *words = CountWords(input, metadata); return OkStatus();
  }
  HEDDLE_CHECK(false, "every encoder makes codes");
}

// The rows in which no cell of a column of omit is missing; nullopt: all.
std::optional<std::vector<int64_t>> RowsThatStay(const Frame& frame, const TransformSpec& spec) {
  if (!spec.HasOmit()) return std::nullopt;
  std::vector<uint8_t> stays(static_cast<size_t>(frame.rows()), 1);
  for (int64_t j = 0; j < frame.columns(); ++j) {
    const ColumnSpec& one = spec.columns[static_cast<size_t>(j)];
    if (!one.omit) continue;
    const Column cells = frame.column(j);
    const ColumnInput input{.op = {}, .name = {}, .cells = cells, .spec = one};
    for (int64_t i = 0; i < frame.rows(); ++i)
      if (input.IsMissing(i)) stays[static_cast<size_t>(i)] = 0;
  }
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < frame.rows(); ++i)
    if (stays[static_cast<size_t>(i)] != 0) rows.push_back(i);
  return rows;
}

// Whether compress() reads the result (compiler/optimize/compress_where_made.cc): then it is made of column
// groups, where that pays.
bool MayMakeGroups(const Node& node) { return BooleanAttribute(node, "compressed", false); }

// Bytes of a row while the codes of a column become a group: numbers of distinct cells, codes as doubles,
// tuples of the blocks of rows, and the codes or cells of the group.
constexpr int64_t kBytesOfCodedCell = 24;
// Columns that a plan counts at once; a run takes as many as it has threads and room.
constexpr int64_t kPlannedColumns = 4;

int64_t ColumnsAtOnce(int64_t rows) {
  const MemoryBudget& budget = MemoryBudget::Process();
  const int64_t room = budget.limit() - budget.used() + BlockPool::Process().Statistics().trimmable_bytes;
  return std::clamp<int64_t>(room / (kBytesOfCodedCell * std::max<int64_t>(1, rows)), 1, ParallelThreads());
}

const Value* EmbeddingOf(const KernelCall& call) {
  return call.node.op == "transformapply" && IsGiven(call.node, kEmbedding) ? call.inputs[kEmbedding]
                                                                            : nullptr;
}

// Encodes column j, by the metadata that are there or, with `fit`, by what it learns of the column first.
// `known`: its distinct cells, if somebody has found them.
Status EncodeColumn(const KernelCall& call, const ColumnSpec& spec, int64_t j, bool fit, Format format,
                    DistinctCells* known, ColumnMetadata* metadata, EncodedCells* encoded) {
  const Frame& frame = call.inputs[kTarget]->frame();
  EncodedColumn column(call.node.op, frame, spec, j);
  if (known != nullptr && !known->numbers.empty()) column.SetDistinct(std::move(*known));
  HEDDLE_RETURN_IF_ERROR(column.Find(call.context.cancelled));
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  if (fit) HEDDLE_RETURN_IF_ERROR(Fit(column.input(), metadata));
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  const auto rows = static_cast<size_t>(frame.rows());
  WordCounts* const words = &encoded->words[static_cast<size_t>(j)];
  if (encoded->groups.empty())
    return Encode(column.input(), *metadata, {encoded->codes.mutable_data() + j * frame.rows(), rows}, words);
  HEDDLE_ASSIGN_OR_RETURN(Matrix codes, Matrix::Dense(frame.rows(), 1));
  HEDDLE_RETURN_IF_ERROR(Encode(column.input(), *metadata, {codes.mutable_data(), rows}, words));
  if (spec.encoder == Encoder::kBagOfWords) return OkStatus();
  HEDDLE_ASSIGN_OR_RETURN(encoded->groups[static_cast<size_t>(j)],
                          GroupOfCodes(std::move(codes), format, call.context));
  return OkStatus();
}

// The cells of all columns but those that are skipped, and how each of them ended.
struct EncodedColumns {
  EncodedCells cells;
  std::vector<Status> outcomes;
};
Result<EncodedColumns> EncodeColumns(const KernelCall& call, const TransformSpec& spec, bool fit,
                                     Format format, bool by_groups, KnownColumns* known,
                                     std::vector<ColumnMetadata>* metadata) {
  const Frame& frame = call.inputs[kTarget]->frame();
  const Value* const embedding = EmbeddingOf(call);
  Status fits = CheckEncoders(call.node, spec, embedding != nullptr);
  if (!fits.ok()) return fits.WithCode(StatusCode::kFailedPrecondition);
  metadata->resize(spec.columns.size());
  EncodedColumns encoded;
  if (embedding != nullptr) encoded.cells.embedding = &embedding->matrix();
  encoded.cells.words.resize(spec.columns.size());
  if (by_groups) {
    encoded.cells.groups.resize(spec.columns.size());
  } else {
    HEDDLE_ASSIGN_OR_RETURN(encoded.cells.codes, Matrix::Dense(frame.columns(), frame.rows()));
  }
  encoded.outcomes.resize(spec.columns.size());
  const int64_t at_once = by_groups ? ColumnsAtOnce(frame.rows()) : ParallelThreads();
  std::atomic<size_t> next = 0;
  ParallelFor(std::min(at_once, frame.columns()), 1, [&](int64_t, int64_t) {
    for (size_t j = next++; j < spec.columns.size(); j = next++)
      if (!IsCancelled(call.context.cancelled) && (known->skipped.empty() || known->skipped[j] == 0))
        encoded.outcomes[j] = EncodeColumn(call, spec.columns[j], static_cast<int64_t>(j), fit, format,
                                           known->distinct.empty() ? nullptr : &known->distinct[j],
                                           &(*metadata)[j], &encoded.cells);
  });
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  for (const Status& outcome : encoded.outcomes)
    if (outcome.code() == StatusCode::kResourceExhausted) return outcome;
  return encoded;
}

Result<Matrix> AssembleRows(const KernelCall& call, const TransformSpec& spec,
                            const std::vector<ColumnMetadata>& metadata, const EncodedCells& cells,
                            Format format) {
  const Value* const embedding = EmbeddingOf(call);
  HEDDLE_ASSIGN_OR_RETURN(const EncodedLayout layout,
                          EncodedLayout::Of(call.node.op, spec, metadata,
                                            embedding == nullptr ? 0 : embedding->matrix().columns()));
  const Frame& frame = call.inputs[kTarget]->frame();
  const std::optional<std::vector<int64_t>> rows = RowsThatStay(frame, spec);
  if (cells.groups.empty()) return AssembleEncoded(cells, layout, rows, format);
  const int64_t begin_ns = SystemClock().MonotonicNs();
  HEDDLE_ASSIGN_OR_RETURN(Matrix groups, AssembleGroups(cells, layout, frame.rows(), rows, call.context));
  CompressionRecord record{.place = PlaceOf(call.node)};
  record.why_not = WhyByCells(groups, call.total_rows, format, call.node.FindAttribute("reads"),
                              &record.plain_bytes);
  Result<Matrix> result = record.why_not.empty() ? groups
                          : format == Format::kSparse ? AsSparse(groups)
                                                      : AsDense(groups);
  // Without room for the cells they stay as they are.
  if (result.status().code() == StatusCode::kResourceExhausted) {
    record.why_not.clear();
    result = groups;
  }
  if (record.why_not.empty()) {
    record.bytes = groups.groups().bytes();
    record.groups = GroupsText(groups.groups());
    record.ns = SystemClock().MonotonicNs() - begin_ns;
  }
  CompressionRecords::Process().Add(call.context.fused, record);
  return result;
}

// encode(by_groups, metadata), where it pays by column groups, and without room for these by cells.
// `metadata`: those that are there, then those that encode() has made of them.
template <typename Encode>
auto EncodeInRoom(const KernelCall& call, const TransformSpec& spec, Format format,
                  std::vector<ColumnMetadata>* metadata, const Encode& encode)
    -> decltype(encode(true, metadata)) {
  if (!MayMakeGroups(call.node)) return encode(false, metadata);
  CompressionRecord record{.place = PlaceOf(call.node)};
  const int64_t rows = std::max(call.total_rows, call.inputs[kTarget]->frame().rows());
  const int64_t columns =
      spec.HasOneColumnEach() ? static_cast<int64_t>(spec.columns.size()) : kUnknown;
  record.why_not = WhyNoGroups({rows, columns}, format, call.node.FindAttribute("reads"));
  if (record.why_not.empty()) {
    std::vector<ColumnMetadata> made = *metadata;
    auto encoded = WithinMemory(call.node.op, [&] { return encode(true, &made); });
    if (encoded.status().code() != StatusCode::kResourceExhausted) {
      *metadata = std::move(made);
      return encoded;
    }
    record.why_not = "there is no memory for the groups";
  }
  CompressionRecords::Process().Add(call.context.fused, record);
  return encode(false, metadata);
}

Result<Matrix> EncodeFrame(const KernelCall& call, const TransformSpec& spec, bool fit, Format format,
                           std::vector<ColumnMetadata>* metadata) {
  return EncodeInRoom(
      call, spec, format, metadata,
      [&](bool by_groups, std::vector<ColumnMetadata>* made) -> Result<Matrix> {
        KnownColumns known;
        HEDDLE_ASSIGN_OR_RETURN(const EncodedColumns encoded,
                                EncodeColumns(call, spec, fit, format, by_groups, &known, made));
        for (const Status& outcome : encoded.outcomes) HEDDLE_RETURN_IF_ERROR(outcome);
        return AssembleRows(call, spec, *made, encoded.cells, format);
      });
}

Status RunEncode(const KernelCall& call, std::span<Value> results) {
  const Schema& schema = *call.inputs[kTarget]->frame().schema();
  HEDDLE_ASSIGN_OR_RETURN(const TransformSpec spec, GivenSpec(call, kSpec, schema));
  std::vector<ColumnMetadata> metadata;
  HEDDLE_ASSIGN_OR_RETURN(results[0],
                          EncodeFrame(call, spec, /*fit=*/true, ResultsOf(call.node)[0].format, &metadata));
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  HEDDLE_ASSIGN_OR_RETURN(results[1], MetadataFrame(spec, schema, metadata));
  return OkStatus();
}

Result<std::vector<ColumnMetadata>> GivenMetadata(const KernelCall& call, const TransformSpec& spec) {
  return ReadMetadataFrame(call.node.op, spec, *call.inputs[kTarget]->frame().schema(),
                           call.inputs[kMetaOfApply]->frame());
}

Result<Value> RunApply(const KernelCall& call) {
  const Schema& schema = *call.inputs[kTarget]->frame().schema();
  HEDDLE_ASSIGN_OR_RETURN(const TransformSpec spec, GivenSpec(call, kSpecOfApply, schema));
  HEDDLE_ASSIGN_OR_RETURN(std::vector<ColumnMetadata> metadata, GivenMetadata(call, spec));
  HEDDLE_ASSIGN_OR_RETURN(Matrix encoded,
                          EncodeFrame(call, spec, /*fit=*/false, call.node.info.format, &metadata));
  return Value(std::move(encoded));
}

// Every rank encodes its rows; those of omit leave where they are.
Status RunApplyStage(const StageCall& call, std::span<Value> outputs) {
  if (call.stage == 1) return GiveReported(call, outputs);
  const KernelCall whole = call.WholeCall();
  const Schema& schema = *call.inputs[kTarget]->frame().schema();
  HEDDLE_ASSIGN_OR_RETURN(const TransformSpec spec, GivenSpec(whole, kSpecOfApply, schema));
  HEDDLE_ASSIGN_OR_RETURN(std::vector<ColumnMetadata> metadata, GivenMetadata(whole, spec));
  HEDDLE_ASSIGN_OR_RETURN(EncodedRows rows, EncodeRows(whole, spec, {}, call.node.info.format, &metadata));
  outputs[0] = std::move(rows.matrix);
  HEDDLE_ASSIGN_OR_RETURN(outputs[1], ReportOf(rows.failures));
  return OkStatus();
}

bool IsUnsized(const Node& node, std::span<const ValueInfo>) { return !node.info.IsSized(); }
constexpr StagedForm kApplyUneven = {
    .stages = kReportingStages, .result = StagedResult::kUneven, .applies = IsUnsized, .run = RunApplyStage};
constexpr StagedForm kApplyStaged = {.stages = kReportingStages,
                                     .result = StagedResult::kSameRows,
                                     .other = &kApplyUneven,
                                     .applies = IsSized,
                                     .run = RunApplyStage};

// Codes of all columns, and the numbers of the distinct cells of one. Of groups: what becomes a group of a
// few columns, and the codes of all of them, of which the plan knows nothing where the result is sparse.
double EncodeWorkingBytes(const Node& node, std::span<const ValueInfo> inputs) {
  const Shape& target = inputs[kTarget].shape;
  const bool is_sparse = ResultsOf(node)[0].format == Format::kSparse;
  const Scalar* const reads = node.FindAttribute("reads");
  if (MayMakeGroups(node) && WhyNoGroups({kUnknown, kUnknown}, ResultsOf(node)[0].format, reads).empty()) {
    constexpr int64_t kBytesOfCode = 2;
    return static_cast<double>(target.rows) *
           static_cast<double>(kBytesOfCodedCell * std::min(kPlannedColumns, target.columns) +
                               (is_sparse ? kBytesOfCode * target.columns : 0));
  }
  return static_cast<double>(target.rows) * (8 * static_cast<double>(target.columns) + 4);
}

}  // namespace

Status CheckEncoders(const Node& node, const TransformSpec& spec, bool has_embedding) {
  if (!spec.function.empty() && node.FindAttribute("udf") == nullptr)
    return InvalidArgument(
               "{}: the spec names the function '{}', so it must be known when the script is "
               "compiled",
               node.op, spec.function)
        .WithNote("write it as one text in the script, or as texts joined by +");
  const bool embeds = std::any_of(spec.columns.begin(), spec.columns.end(), [](const ColumnSpec& one) {
    return one.encoder == Encoder::kWordEmbedding;
  });
  if (!embeds || has_embedding) return OkStatus();
  if (node.op == "transformapply")
    return InvalidArgument(
        "transformapply: the spec has 'word_embedding', but the argument embedding is missing");
  return InvalidArgument("{}: 'word_embedding' needs metadata and an embedding", node.op)
      .WithNote("transformapply(target=F, meta=M, spec=s, embedding=E) has them");
}

EncodedColumn::EncodedColumn(std::string_view op, const Frame& frame, const ColumnSpec& spec, int64_t j)
    : cells_(frame.column(j)),
      input_{.op = op,
             .name = frame.schema()->NameOf(j),
             .cells = cells_,
             .spec = spec,
             .distinct = &distinct_,
             .words = &words_} {}

Status EncodedColumn::Find(const std::atomic<bool>* cancelled) {
  if (ColumnInput::NeedsDistinct(input_.spec) && distinct_.numbers.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(distinct_, FindDistinctCells(cells_, cancelled));
  }
  if (input_.spec.encoder == Encoder::kBagOfWords) {
    HEDDLE_ASSIGN_OR_RETURN(words_, FindWords(cells_));
  }
  return OkStatus();
}

namespace {

Result<EncodedRows> EncodeRowsAs(const KernelCall& call, const TransformSpec& spec, Format format,
                                 bool by_groups, KnownColumns* known, std::vector<ColumnMetadata>* metadata) {
  const Frame& frame = call.inputs[kTarget]->frame();
  HEDDLE_ASSIGN_OR_RETURN(const EncodedColumns encoded,
                          EncodeColumns(call, spec, /*fit=*/false, format, by_groups, known, metadata));
  EncodedRows rows{.matrix = Value(Frame())};
  for (size_t j = 0; j < encoded.outcomes.size(); ++j) {
    if (encoded.outcomes[j].ok()) continue;
    const auto column = static_cast<int64_t>(j);
    const EncodedColumn of_frame(call.node.op, frame, spec.columns[j], column);
    std::vector<double> numbers(static_cast<size_t>(frame.rows()));
    const bool is_of_cells = !NumbersOf(of_frame.input(), numbers).ok();
    rows.failures.push_back({column, is_of_cells ? 0 : 1, encoded.outcomes[j]});
  }
  const bool skips = std::find(known->skipped.begin(), known->skipped.end(), 1) != known->skipped.end();
  if (skips || !rows.failures.empty()) return rows;
  HEDDLE_ASSIGN_OR_RETURN(Matrix matrix, AssembleRows(call, spec, *metadata, encoded.cells, format));
  rows.matrix = Value(std::move(matrix));
  return rows;
}

}  // namespace

Result<EncodedRows> EncodeRows(const KernelCall& call, const TransformSpec& spec, KnownColumns known,
                               Format format, std::vector<ColumnMetadata>* metadata) {
  return EncodeInRoom(call, spec, format, metadata,
                      [&](bool by_groups, std::vector<ColumnMetadata>* made) {
                        return EncodeRowsAs(call, spec, format, by_groups, &known, made);
                      });
}

/// [X, M] = transformencode(target=F, spec=text): the cells of a frame as numbers, and how they were made.
///
/// Shapes:  F is m x n; X has a column for each column of F, or one for each code of a column of dummies, and
///          m rows but those of omit. M is a frame of strings (ops/transform/metadata.h).
/// Errors:  in the spec; a text where numbers must be.
/// Format:  dense; CSR where at least one column of five is dummy-coded or a bag of words.
/// Order:   tokens are numbered as they appear; sums are exact: one result for any number of threads.
/// Cost:    a hash of each cell that is recoded or hashed; a sort of columns that are binned by height.
/// Rows:    all ranks learn of the columns together and encode their own (ops/transform/encode_stages.cc);
/// each
///          has the metadata. Rows of omit leave where they are.
extern constexpr Operator kTransformEncode = {.name = "transformencode",
                                              .form = CallForm::kNamed,
                                              .parameters = "target spec",
                                              .min_inputs = 2,
                                              .max_inputs = 2,
                                              .results = 2,
                                              .infer_several = InferEncode,
                                              .input_use = FirstByRows,
                                              .staged = &kEncodeStages,
                                              .run_several = RunEncode,
                                              .may_fail = true,
                                              .takes_frames = true,
                                              .working_bytes = EncodeWorkingBytes};

/// transformapply(target=F, meta=M, spec=text [, embedding=E]): the cells of a frame as the numbers that
/// transformencode would have made of them. A column of word_embedding becomes the rows of E that the codes
/// of its tokens number.
///
/// Shapes:  as of transformencode; E has a row for each token, its columns take the place of the frame's.
/// Errors:  those of transformencode, and metadata that are not those of the spec. What the metadata do not
///          know is no error: a token NaN or a row of zeros, a number beyond the bins the first or last bin.
/// Rows:    every rank encodes its own.
extern constexpr Operator kTransformApply = {.name = "transformapply",
                                             .form = CallForm::kNamed,
                                             .parameters = "target meta spec embedding?",
                                             .min_inputs = 3,
                                             .max_inputs = 4,
                                             .infer = InferApply,
                                             .input_use = FirstByRows,
                                             .staged = &kApplyStaged,
                                             .run = RunApply,
                                             .may_fail = true,
                                             .takes_frames = true,
                                             .working_bytes = EncodeWorkingBytes};

}  // namespace heddle::ops
