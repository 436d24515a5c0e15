// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "ops/base/arguments.h"
#include "ops/base/parallel.h"
#include "ops/base/whole_number.h"
#include "ops/catalog.h"
#include "ops/frame/arrange.h"
#include "ops/frame/convert.h"
#include "ops/frame/part_failures.h"
#include "ops/frame/text_column.h"
#include "ops/transform/arguments.h"
#include "ops/transform/tokenizer.h"

namespace heddle::ops {
namespace {

enum Input { kTarget, kSpec, kMaxTokens };
constexpr int64_t kGrainRows = int64_t{1} << 8;
constexpr int64_t kMostPadded = int64_t{1} << 20;

// Checks what depends on the columns of the frame and on max_tokens, as far as they are known; `most` is
// kUnknown where the number of tokens is not limited or not known.
Status CheckSpec(const TokenizeSpec& spec, int64_t columns, bool is_limited, int64_t most) {
  std::vector<int64_t> used = spec.id_columns;
  used.push_back(spec.text_column);
  for (const int64_t column : used)
    if (columns != kUnknown && column >= columns)
      return InvalidArgument("tokenize: the spec speaks of column {}, the frame has {}", column + 1, columns);
  if (!is_limited && (spec.wide || spec.padded))
    return InvalidArgument("tokenize: max_tokens is missing, which '{}' of the spec needs",
                           spec.wide ? "format_wide" : "apply_padding")
        .WithNote("it is how many tokens of a text there are at most");
  if (most != kUnknown && most < 1)
    return InvalidArgument("tokenize: max_tokens must be 1 at least, not {}", most);
  if ((spec.wide || spec.padded) && most > kMostPadded)
    return InvalidArgument("tokenize: each text would have max_tokens = {} cells, {} are possible", most,
                           kMostPadded)
        .WithNote(fmt::format("'{}' of the spec makes them", spec.wide ? "format_wide" : "apply_padding"));
  return OkStatus();
}

// The columns of the result; kUnknown for `most` where that is not known.
std::shared_ptr<const Schema> SchemaOf(const TokenizeSpec& spec, int64_t most) {
  if (spec.wide && most == kUnknown) return nullptr;
  Schema schema;
  schema.types.assign(spec.id_columns.size(), ColumnType::kString);
  const bool hashes = spec.output == TokenOutput::kHash;
  if (spec.wide)
    schema.types.insert(schema.types.end(), static_cast<size_t>(most),
                        hashes ? ColumnType::kInteger64 : ColumnType::kString);
  else if (spec.output == TokenOutput::kCount)
    schema.types.insert(schema.types.end(), {ColumnType::kString, ColumnType::kInteger64});
  else
    schema.types.insert(schema.types.end(),
                        {ColumnType::kInteger64, hashes ? ColumnType::kInteger64 : ColumnType::kString});
  schema.names = CountedNames(schema.columns());
  return std::make_shared<const Schema>(std::move(schema));
}

Result<ValueInfo> InferTokenize(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireFrame(context, kTarget, "target"));
  HEDDLE_RETURN_IF_ERROR(RequireScalar(context, kSpec, "spec"));
  const bool is_limited = IsGiven(context.node, kMaxTokens);
  int64_t most = kUnknown;
  if (is_limited) {
    HEDDLE_RETURN_IF_ERROR(RequireScalar(context, kMaxTokens, "max_tokens"));
    if (const Scalar* const known = KnownScalar(context, kMaxTokens)) {
      HEDDLE_ASSIGN_OR_RETURN(
          most, RequireWholeNumber(*known, "tokenize", "max_tokens", StatusCode::kInvalidArgument));
      most = std::max<int64_t>(most, 0);
    }
  }
  const Scalar* const text = KnownScalar(context, kSpec);
  if (text == nullptr) return ValueInfo::OfFrame(kUnknown, nullptr);
  if (!text->IsString()) return InvalidArgument("tokenize: spec must be a string");
  HEDDLE_ASSIGN_OR_RETURN(const TokenizeSpec spec, ParseTokenizeSpec("tokenize", text->AsString()));
  const Shape& target = context.inputs[kTarget].shape;
  HEDDLE_RETURN_IF_ERROR(CheckSpec(spec, target.columns, is_limited, most));
  return ValueInfo::OfFrame(spec.wide ? target.rows : kUnknown, SchemaOf(spec, most));
}

// Cells of a column as texts, the cell of row i `counts[i]` times.
Result<Column> RepeatTexts(const Column& column, const std::vector<int64_t>& counts) {
  std::vector<std::optional<std::string>> cells;
  for (int64_t i = 0; i < column.rows(); ++i) {
    std::optional<std::string> text;
    if (!column.IsMissing(i)) AppendCell(column, i, &text.emplace());
    cells.insert(cells.end(), static_cast<size_t>(counts[static_cast<size_t>(i)]), text);
  }
  return TextColumn(cells);
}

// The texts of one column, token by token.
class Tokens {
 public:
  /// `first_row`: the number of the first row of `column` among all, from 0.
  Tokens(const Column& column, int64_t first_row, const TokenizeSpec& spec,
         const std::atomic<bool>* cancelled)
      : column_(column), first_row_(first_row), spec_(spec), cancelled_(cancelled) {}
  /// Nothing, or not all, once the call is cancelled or a row has failed: status() says so. Thread-safe.
  std::vector<Token> Of(int64_t row) const {
    if (IsCancelled(cancelled_) || failed_row_.load() <= row) return {};
    Result<std::vector<Token>> tokens = Cut(row);
    if (tokens.ok()) return *std::move(tokens);
    int64_t first = failed_row_.load();
    while (row < first && !failed_row_.compare_exchange_weak(first, row)) {
    }
    return {};
  }
  /// The error of the first row that has one.
  Status status() const {
    if (IsCancelled(cancelled_)) return Cancelled("tokenize");
    const int64_t row = failed_row_.load();
    if (row == kNoRow) return OkStatus();
    return FailedPrecondition("tokenize: row {}: {}", first_row_ + row + 1, Cut(row).status().message());
  }

 private:
  static constexpr int64_t kNoRow = std::numeric_limits<int64_t>::max();

  Result<std::vector<Token>> Cut(int64_t row) const {
    std::string text;
    if (!column_.IsMissing(row)) AppendCell(column_, row, &text);
    return TokensOf(text, spec_, cancelled_);
  }

  const Column& column_;
  const int64_t first_row_;
  const TokenizeSpec& spec_;
  const std::atomic<bool>* cancelled_;
  mutable std::atomic<int64_t> failed_row_{kNoRow};
};

// A row for each token: its number and count, or its text and number.
Status MakeLong(const Tokens& tokens, const TokenizeSpec& spec, int64_t most, std::vector<int64_t>* counts,
                std::vector<Column>* columns) {
  std::vector<std::vector<TokenRow>> rows(counts->size());
  ParallelFor(static_cast<int64_t>(rows.size()), kGrainRows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::vector<TokenRow>& row = rows[static_cast<size_t>(i)];
      row = TokenRows(tokens.Of(i), spec, most);
      if (spec.padded)
        row.resize(static_cast<size_t>(most), {"", spec.output == TokenOutput::kHash ? 0 : -1, 0});
    }
  });
  HEDDLE_RETURN_IF_ERROR(tokens.status());
  std::vector<std::optional<std::string>> texts;
  std::vector<int64_t> numbers, frequencies;
  for (size_t i = 0; i < rows.size(); ++i) {
    (*counts)[i] = static_cast<int64_t>(rows[i].size());
    for (TokenRow& row : rows[i]) {
      numbers.push_back(row.number);
      if (spec.output == TokenOutput::kHash)
        frequencies.push_back(row.count);
      else
        texts.emplace_back(std::move(row.text));
    }
    rows[i] = {};
  }
  HEDDLE_ASSIGN_OR_RETURN(Column number, Column::OfIntegers(numbers));
  HEDDLE_ASSIGN_OR_RETURN(
      Column other, spec.output == TokenOutput::kHash ? Column::OfIntegers(frequencies) : TextColumn(texts));
  if (spec.output == TokenOutput::kCount) std::swap(number, other);
  columns->push_back(std::move(number));
  columns->push_back(std::move(other));
  return OkStatus();
}

// A row for each text, `most` columns.
Status MakeWide(const Tokens& tokens, const TokenizeSpec& spec, int64_t most, int64_t rows,
                std::vector<Column>* columns) {
  const auto count = static_cast<size_t>(most), height = static_cast<size_t>(rows);
  if (spec.output == TokenOutput::kHash) {
    std::vector<std::vector<int64_t>> cells(count, std::vector<int64_t>(height));
    ParallelFor(rows, kGrainRows, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const std::vector<int64_t> row = TokenCodes(tokens.Of(i), spec, most);
        for (size_t k = 0; k < count; ++k) cells[k][static_cast<size_t>(i)] = row[k];
      }
    });
    HEDDLE_RETURN_IF_ERROR(tokens.status());
    for (const std::vector<int64_t>& column : cells) {
      HEDDLE_ASSIGN_OR_RETURN(Column made, Column::OfIntegers(column));
      columns->push_back(std::move(made));
    }
    return OkStatus();
  }
  std::optional<std::string> none;
  if (spec.padded) none = "";
  std::vector<std::vector<std::optional<std::string>>> cells(
      count, std::vector<std::optional<std::string>>(height, none));
  ParallelFor(rows, kGrainRows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::vector<Token> row = tokens.Of(i);
      for (size_t k = 0; k < std::min(count, row.size()); ++k)
        cells[k][static_cast<size_t>(i)] = std::move(row[k].text);
    }
  });
  HEDDLE_RETURN_IF_ERROR(tokens.status());
  for (const std::vector<std::optional<std::string>>& column : cells) {
    HEDDLE_ASSIGN_OR_RETURN(Column made, TextColumn(column));
    columns->push_back(std::move(made));
  }
  return OkStatus();
}

Result<TokenizeSpec> GivenTokenizeSpec(const KernelCall& call, int64_t most) {
  const Scalar* const text = GivenScalar(call, kSpec);
  if (text == nullptr || !text->IsString()) return InvalidArgument("tokenize: spec must be a string");
  HEDDLE_ASSIGN_OR_RETURN(TokenizeSpec spec, ParseTokenizeSpec("tokenize", text->AsString()));
  const bool is_limited = IsGiven(call.node, kMaxTokens);
  HEDDLE_RETURN_IF_ERROR(
      CheckSpec(spec, call.inputs[kTarget]->frame().columns(), is_limited, is_limited ? most : kUnknown));
  return spec;
}

// Of the rows of the target that the call has, the first of which is row `first_row` of all, from 0.
Result<Value> TokenizeRows(const KernelCall& call, int64_t first_row) {
  const Frame& frame = call.inputs[kTarget]->frame();
  int64_t most = std::numeric_limits<int64_t>::max();
  if (const Scalar* const limit = GivenScalar(call, kMaxTokens)) {
    HEDDLE_ASSIGN_OR_RETURN(
        most, RequireWholeNumber(*limit, "tokenize", "max_tokens", StatusCode::kFailedPrecondition));
    most = std::max<int64_t>(most, 0);
  }
  const Result<TokenizeSpec> spec = GivenTokenizeSpec(call, most);
  if (!spec.ok()) return spec.status().WithCode(StatusCode::kFailedPrecondition);
  const Column text = frame.column(spec->text_column);
  std::vector<int64_t> counts(static_cast<size_t>(frame.rows()), 1);
  std::vector<Column> of_tokens;
  const Tokens tokens(text, first_row, *spec, call.context.cancelled);
  HEDDLE_RETURN_IF_ERROR(spec->wide ? MakeWide(tokens, *spec, most, frame.rows(), &of_tokens)
                                    : MakeLong(tokens, *spec, most, &counts, &of_tokens));
  std::vector<Column> columns;
  for (const int64_t id : spec->id_columns) {
    HEDDLE_ASSIGN_OR_RETURN(Column column, RepeatTexts(frame.column(id), counts));
    columns.push_back(std::move(column));
  }
  columns.insert(columns.end(), std::make_move_iterator(of_tokens.begin()),
                 std::make_move_iterator(of_tokens.end()));
  return Value(Frame(SchemaOf(*spec, most), std::move(columns)));
}

Result<Value> RunTokenize(const KernelCall& call) { return TokenizeRows(call, 0); }

// Every rank cuts its own texts; the failure of the first row of all counts.
Status RunTokenizeStage(const StageCall& call, std::span<Value> outputs) {
  if (call.stage == 1) return GiveReported(call, outputs);
  return MakeReported(TokenizeRows(call.WholeCall(), call.rows.Begin(call.rank)), 0, 0, outputs);
}

bool HasRowsOfTarget(const Node& node, std::span<const ValueInfo> inputs) {
  return node.info.shape.rows != kUnknown && node.info.shape.rows == inputs[kTarget].shape.rows;
}
bool HasOtherRows(const Node& node, std::span<const ValueInfo> inputs) {
  return !HasRowsOfTarget(node, inputs);
}
constexpr StagedForm kLongStaged = {.stages = kReportingStages,
                                    .result = StagedResult::kUneven,
                                    .applies = HasOtherRows,
                                    .run = RunTokenizeStage};
constexpr StagedForm kStaged = {.stages = kReportingStages,
                                .result = StagedResult::kSameRows,
                                .other = &kLongStaged,
                                .applies = HasRowsOfTarget,
                                .run = RunTokenizeStage};

}  // namespace

/// tokenize(target=F, spec=text [, max_tokens=n]): the texts of a column of F, cut into tokens.
///
/// Shapes:  a row for each token (with out: count and out: hash, for each distinct one) of each row of F, n
/// at
///          most: the id columns as strings, and the token and how often it occurs (count), where it is and
///          the token (position), or a code of the token and how often it occurs (hash). With format_wide a
///          row for each row of F: the id columns and n tokens, or how often the codes 1 to n occur.
/// Errors:  in the spec; columns that F does not have.
/// Order:   of rows, then of tokens; counted tokens stand in the order of a HashMap of Java.
/// Cost:    reads each text once, in parallel by rows.
/// Rows:    every rank has those of its texts.
extern constexpr Operator kTokenize = {.name = "tokenize",
                                       .form = CallForm::kNamed,
                                       .parameters = "target spec max_tokens?",
                                       .min_inputs = 2,
                                       .max_inputs = 3,
                                       .infer = InferTokenize,
                                       .input_use = FirstByRows,
                                       .staged = &kStaged,
                                       .run = RunTokenize,
                                       .may_fail = true,
                                       .takes_frames = true};

}  // namespace heddle::ops
