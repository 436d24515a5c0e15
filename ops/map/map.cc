// SPDX-License-Identifier: Apache-2.0
#include "core/text/utf8.h"
#include "ops/base/arguments.h"
#include "ops/frame/arrange.h"
#include "ops/frame/text_column.h"
#include "ops/map/java_expression.h"
#include "ops/map/moving_average.h"
#include "ops/map/syntactic_patterns.h"
#include "ops/text/java_text.h"

namespace heddle::ops {
namespace {

using Cells = std::vector<std::optional<std::string>>;
using Table = std::vector<Cells>;  // By columns.

// What the text of the call asks for.
struct Request {
  enum class Kind { kCells, kRows, kColumns, kPairs, kPatterns, kSeries };
  Kind kind = Kind::kCells;
  std::optional<JavaLambda> lambda;
  SyntacticPatterns patterns;
  MovingAverage series;
};

bool Mentions(std::string_view text, std::string_view word) { return text.find(word) != text.npos; }

Result<Request> ReadRequest(const std::string& text, int64_t margin) {
  if (margin < 0 || margin > 2)
    return InvalidArgument("map: margin must be 0 (cells), 1 (rows) or 2 (columns), not {}", margin);
  Request request;
  if (!Mentions(text, "->") && Mentions(text, "syntacticalPatternDiscovery")) {
    request.kind = Request::Kind::kPatterns;
    HEDDLE_ASSIGN_OR_RETURN(request.patterns, SyntacticPatterns::Parse(text));
    return request;
  }
  if (!Mentions(text, "->") && Mentions(text, "exponentialMovingAverageImputation")) {
    request.kind = Request::Kind::kSeries;
    HEDDLE_ASSIGN_OR_RETURN(request.series, MovingAverage::Parse(text));
    return request;
  }
  const bool is_name = text == "UtilFunctions.jaccardSim";
  const bool pairs = Mentions(text, "jaccardSim");
  const bool cells = margin == 0 || pairs;
  HEDDLE_ASSIGN_OR_RETURN(request.lambda,
                          JavaLambda::Parse(is_name ? "(x, y) -> UtilFunctions.jaccardSim(x, y)" : text,
                                            cells ? JavaType::kString : JavaType::kStrings));
  request.kind = pairs         ? Request::Kind::kPairs
                 : margin == 0 ? Request::Kind::kCells
                 : margin == 1 ? Request::Kind::kRows
                               : Request::Kind::kColumns;
  const size_t needed = pairs ? 2 : 1;
  if (request.lambda->parameters() != needed)
    return InvalidArgument("map: the expression has {} parameter{}, {} needed", request.lambda->parameters(),
                           request.lambda->parameters() == 1 ? "" : "s", needed == 1 ? "one is" : "two are");
  if (!cells && request.lambda->type() != JavaType::kStrings)
    return InvalidArgument("map: with margin={} the expression must give a String[], not a {}", margin,
                           Name(request.lambda->type()))
        .WithNote("new String[]{a, b} makes one of texts");
  return request;
}

Result<ValueInfo> InferMap(const InferContext& context) {
  const ValueInfo& x = context.inputs[0];
  if (!x.IsFrame())
    return InvalidArgument("map: the first argument must be a frame, not a {}", Name(x.data_type))
        .WithNote("as.frame(X) makes a frame of a matrix");
  HEDDLE_RETURN_IF_ERROR(RequireScalar(context, 1, "the expression"));
  ValueInfo unknown = ValueInfo::OfFrame(x.shape.rows, nullptr);
  const Scalar* const text = KnownScalar(context, 1);
  const Scalar* const margin = KnownScalar(context, 2);
  if (text == nullptr || (IsGiven(context.node, 2) && margin == nullptr)) return unknown;
  if (!text->IsString())
    return InvalidArgument("map: the expression must be a string, like \"x -> x.trim()\"");
  HEDDLE_ASSIGN_OR_RETURN(const Request request,
                          ReadRequest(text->AsString(), margin == nullptr ? 0 : margin->AsInteger()));
  if (request.kind == Request::Kind::kPatterns) return x;
  const int64_t columns = request.kind == Request::Kind::kPairs ? x.shape.rows : x.shape.columns;
  if (columns == kUnknown) return unknown;
  if (request.kind == Request::Kind::kSeries) {
    const std::vector<ColumnType> types(static_cast<size_t>(columns), ColumnType::kFloat64);
    return ValueInfo::OfFrame(x.shape.rows,
                              std::make_shared<const Schema>(Schema{types, CountedNames(columns)}));
  }
  return ValueInfo::OfFrame(x.shape.rows, SchemaOfTexts(columns));
}

// A cell that is not missing as Java has it: of columns of booleans "true" and "false".
std::optional<std::string> JavaTextOf(const Frame& frame, int64_t row, int64_t column) {
  std::optional<std::string> text = TextOfCell(frame, row, column);
  const bool is_boolean = frame.schema()->types[static_cast<size_t>(column)] == ColumnType::kBoolean;
  if (text && is_boolean) *text = *text == "TRUE" ? "true" : "false";
  return text;
}

// The error of a cell, with its place.
Status At(const Status& status, int64_t row, const Frame& frame, int64_t column) {
  const std::string where = column < 0 ? fmt::format("row {}", row + 1)
                            : row < 0
                                ? fmt::format("column {}", frame.schema()->NameOf(column))
                                : fmt::format("row {} of column {}", row + 1, frame.schema()->NameOf(column));
  if (status.code() != StatusCode::kFailedPrecondition) return status;
  return FailedPrecondition("map: {}: {}", where, status.message());
}

Result<Table> MapCells(const Frame& frame, const JavaLambda& lambda, const KernelContext& context) {
  Table table;
  for (int64_t j = 0; j < frame.columns(); ++j) {
    Cells& cells = table.emplace_back(static_cast<size_t>(frame.rows()));
    for (int64_t i = 0; i < frame.rows(); ++i) {
      if (IsCancelled(context.cancelled)) return Cancelled("map");
      const std::optional<std::string> text = JavaTextOf(frame, i, j);
      if (!text) continue;
      const JavaValue argument = ToUtf16(*text);
      const Result<JavaValue> value = lambda.Apply({&argument, 1}, context.cancelled);
      if (IsCancelled(context.cancelled)) return Cancelled("map");
      if (!value.ok()) return At(value.status(), i, frame, j);
      if (TypeOf(*value) == JavaType::kNull) continue;
      cells[static_cast<size_t>(i)] = ToUtf8(TextOf(*value));
    }
  }
  return table;
}

// Of rows or columns: their cells as texts, "null" of a missing one, become at least as many others.
Result<Table> MapLines(const Frame& frame, const JavaLambda& lambda, bool rows,
                       const KernelContext& context) {
  Table table(static_cast<size_t>(frame.columns()), Cells(static_cast<size_t>(frame.rows())));
  const int64_t lines = rows ? frame.rows() : frame.columns();
  const int64_t cells = rows ? frame.columns() : frame.rows();
  for (int64_t line = 0; line < lines; ++line) {
    if (IsCancelled(context.cancelled)) return Cancelled("map");
    JavaTexts texts;
    for (int64_t k = 0; k < cells; ++k) {
      const std::optional<std::string> text = rows ? JavaTextOf(frame, line, k) : JavaTextOf(frame, k, line);
      texts.push_back(text ? ToUtf16(*text) : u"null");
    }
    const JavaValue argument = std::move(texts);
    const Result<JavaValue> value = lambda.Apply({&argument, 1}, context.cancelled);
    if (IsCancelled(context.cancelled)) return Cancelled("map");
    const auto [row, column] = rows ? std::pair(line, int64_t{-1}) : std::pair(int64_t{-1}, line);
    if (!value.ok()) return At(value.status(), row, frame, column);
    if (TypeOf(*value) == JavaType::kNull)
      return At(FailedPrecondition("the expression gives null"), row, frame, column);
    const JavaTexts& results = std::get<JavaTexts>(*value);
    if (results.size() < static_cast<size_t>(cells))
      return At(FailedPrecondition("the expression gives {} texts for {} cells", results.size(), cells), row,
                frame, column);
    for (int64_t k = 0; k < cells; ++k) {
      const std::u16string& text = results[static_cast<size_t>(k)];
      if (text == kJavaNull) continue;
      table[static_cast<size_t>(rows ? k : line)][static_cast<size_t>(rows ? line : k)] = ToUtf8(text);
    }
  }
  return table;
}

// Above the diagonal what the expression gives for two cells of the first column, elsewhere 0.0.
Result<Table> MapPairs(const Frame& frame, const JavaLambda& lambda, const KernelContext& context) {
  const int64_t n = frame.rows();
  Table table(static_cast<size_t>(n), Cells(static_cast<size_t>(n), "0.0"));
  for (int64_t i = 0; i < n; ++i) {
    if (IsCancelled(context.cancelled)) return Cancelled("map");
    const std::optional<std::string> first = JavaTextOf(frame, i, 0);
    for (int64_t j = i + 1; first && j < n; ++j) {
      const std::optional<std::string> second = JavaTextOf(frame, j, 0);
      if (!second) continue;
      if (IsCancelled(context.cancelled)) return Cancelled("map");
      const JavaValue arguments[] = {ToUtf16(*first), ToUtf16(*second)};
      const Result<JavaValue> value = lambda.Apply(arguments, context.cancelled);
      if (!value.ok()) return At(value.status(), i, frame, 0);
      if (TypeOf(*value) == JavaType::kNull) {
        table[static_cast<size_t>(j)][static_cast<size_t>(i)].reset();
        continue;
      }
      table[static_cast<size_t>(j)][static_cast<size_t>(i)] = ToUtf8(TextOf(*value));
    }
  }
  return table;
}

Result<Value> RunMap(const KernelCall& call) {
  const Frame& frame = call.inputs[0]->frame();
  const Scalar& text = call.inputs[1]->scalar();
  const Scalar* const margin = GivenScalar(call, 2);
  const Result<Request> read =
      text.IsString() ? ReadRequest(text.AsString(), margin == nullptr ? 0 : margin->AsInteger())
                      : InvalidArgument("map: the expression must be a string, like \"x -> x.trim()\"");
  if (read.status().code() == StatusCode::kInvalidArgument)
    return FailedPrecondition("{}", read.status().message());
  HEDDLE_RETURN_IF_ERROR(read.status());
  Result<Table> table = Internal("every request is answered");
  switch (read->kind) {
    case Request::Kind::kCells: table = MapCells(frame, *read->lambda, call.context); break;
    case Request::Kind::kRows: table = MapLines(frame, *read->lambda, true, call.context); break;
    case Request::Kind::kColumns: table = MapLines(frame, *read->lambda, false, call.context); break;
    case Request::Kind::kPairs:
      if (frame.columns() == 0) return FailedPrecondition("map: the frame has no column to compare cells of");
      table = MapPairs(frame, *read->lambda, call.context);
      break;
    case Request::Kind::kPatterns: {
      HEDDLE_ASSIGN_OR_RETURN(Frame result, read->patterns.Apply(frame));
      return Value(std::move(result));
    }
    case Request::Kind::kSeries: {
      HEDDLE_ASSIGN_OR_RETURN(Frame result, read->series.Apply(frame));
      return Value(std::move(result));
    }
  }
  HEDDLE_RETURN_IF_ERROR(table.status());
  std::vector<Column> columns;
  for (const Cells& cells : *table) {
    HEDDLE_ASSIGN_OR_RETURN(Column column, TextColumn(cells));
    columns.push_back(std::move(column));
  }
  std::shared_ptr<const Schema> schema = SchemaOfTexts(static_cast<int64_t>(columns.size()));
  return Value(Frame(std::move(schema), std::move(columns)));
}

}  // namespace

/// map(F, "x -> expression", margin): a Java expression of every cell (0), row (1) or column (2).
///
/// Shapes:  F is m x n, the result m x n, strings C1 to Cn; with jaccardSim in the text m x m.
/// Errors:  kInvalidArgument for an expression that docs/map.md does not know, with its place;
///          kFailedPrecondition, with the cell, where Java would throw.
/// Cost:    an interpreter: some hundred operations a cell.
extern constexpr Operator kMap = {.name = "map",
                                  .form = CallForm::kPositional,
                                  .parameters = "target expression margin?",
                                  .min_inputs = 2,
                                  .max_inputs = 3,
                                  .infer = InferMap,
                                  .run = RunMap,
                                  .may_fail = true,
                                  .takes_frames = true};

}  // namespace heddle::ops
