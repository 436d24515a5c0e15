// SPDX-License-Identifier: Apache-2.0
#include "core/text/utf8.h"
#include "ops/base/arguments.h"
#include "ops/base/stages.h"
#include "ops/cells/frame_columns.h"
#include "ops/frame/arrange.h"
#include "ops/frame/part_failures.h"
#include "ops/frame/row_pieces.h"
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

// Rows of a frame, where they stand among all, and where the expression has failed.
struct OwnRows {
  const Frame& frame;
  int64_t first = 0;  // The number of the first row, from 0.
  PartFailure* failure;
};

// The error of a cell, with its place.
Status At(const Status& status, int64_t row, const OwnRows& own, int64_t column) {
  const int64_t number = own.first + row + 1;
  const std::string where =
      column < 0 ? fmt::format("row {}", number)
      : row < 0  ? fmt::format("column {}", own.frame.schema()->NameOf(column))
                 : fmt::format("row {} of column {}", number, own.frame.schema()->NameOf(column));
  if (status.code() != StatusCode::kFailedPrecondition) return status;
  *own.failure = {std::max<int64_t>(column, 0), row < 0 ? 0 : own.first + row,
                  FailedPrecondition("map: {}: {}", where, status.message())};
  return own.failure->status;
}

Result<Table> MapCells(const OwnRows& own, const JavaLambda& lambda, const KernelContext& context) {
  const Frame& frame = own.frame;
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
      if (!value.ok()) return At(value.status(), i, own, j);
      if (TypeOf(*value) == JavaType::kNull) continue;
      cells[static_cast<size_t>(i)] = ToUtf8(TextOf(*value));
    }
  }
  return table;
}

// Of rows or columns: their cells as texts, "null" of a missing one, become at least as many others.
Result<Table> MapLines(const OwnRows& own, const JavaLambda& lambda, bool rows,
                       const KernelContext& context) {
  const Frame& frame = own.frame;
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
    if (!value.ok()) return At(value.status(), row, own, column);
    if (TypeOf(*value) == JavaType::kNull)
      return At(FailedPrecondition("the expression gives null"), row, own, column);
    const JavaTexts& results = std::get<JavaTexts>(*value);
    if (results.size() < static_cast<size_t>(cells))
      return At(FailedPrecondition("the expression gives {} texts for {} cells", results.size(), cells), row,
                own, column);
    for (int64_t k = 0; k < cells; ++k) {
      const std::u16string& text = results[static_cast<size_t>(k)];
      if (text == kJavaNull) continue;
      table[static_cast<size_t>(rows ? k : line)][static_cast<size_t>(rows ? line : k)] = ToUtf8(text);
    }
  }
  return table;
}

// Above the diagonal what the expression gives for two cells of a column, elsewhere 0.0: of the rows of some
// of its cells.
Result<Table> MapPairs(const Cells& cells, const OwnRows& own, const JavaLambda& lambda,
                       const KernelContext& context) {
  const auto n = static_cast<int64_t>(cells.size());
  Table table(cells.size(), Cells(static_cast<size_t>(own.frame.rows()), "0.0"));
  for (int64_t row = 0; row < own.frame.rows(); ++row) {
    if (IsCancelled(context.cancelled)) return Cancelled("map");
    const int64_t i = own.first + row;
    const std::optional<std::string>& first = cells[static_cast<size_t>(i)];
    for (int64_t j = i + 1; first && j < n; ++j) {
      const std::optional<std::string>& second = cells[static_cast<size_t>(j)];
      if (!second) continue;
      if (IsCancelled(context.cancelled)) return Cancelled("map");
      const JavaValue arguments[] = {ToUtf16(*first), ToUtf16(*second)};
      const Result<JavaValue> value = lambda.Apply(arguments, context.cancelled);
      if (!value.ok()) {
        const Status status = At(value.status(), row, own, 0);
        own.failure->place = i;  // Row by row here.
        return status;
      }
      std::optional<std::string>& cell = table[static_cast<size_t>(j)][static_cast<size_t>(row)];
      if (TypeOf(*value) == JavaType::kNull)
        cell.reset();
      else
        cell = ToUtf8(TextOf(*value));
    }
  }
  return table;
}

// The first column as Java has it.
Cells FirstColumn(const Frame& frame) {
  Cells cells;
  for (int64_t i = 0; i < frame.rows(); ++i) cells.push_back(JavaTextOf(frame, i, 0));
  return cells;
}

Result<Request> GivenRequest(const KernelCall& call) {
  const Scalar& text = call.inputs[1]->scalar();
  const Scalar* const margin = GivenScalar(call, 2);
  Result<Request> read =
      text.IsString() ? ReadRequest(text.AsString(), margin == nullptr ? 0 : margin->AsInteger())
                      : InvalidArgument("map: the expression must be a string, like \"x -> x.trim()\"");
  if (read.status().code() == StatusCode::kInvalidArgument)
    return FailedPrecondition("{}", read.status().message());
  if (read.ok() && read->kind == Request::Kind::kPairs && call.inputs[0]->frame().columns() == 0)
    return FailedPrecondition("map: the frame has no column to compare cells of");
  return read;
}

Result<Frame> FrameOfTable(const Table& table) {
  std::vector<Column> columns;
  for (const Cells& cells : table) {
    HEDDLE_ASSIGN_OR_RETURN(Column column, TextColumn(cells));
    columns.push_back(std::move(column));
  }
  std::shared_ptr<const Schema> schema = SchemaOfTexts(static_cast<int64_t>(columns.size()));
  return Frame(std::move(schema), std::move(columns));
}

// `pairs`: all cells of the first column, of kPairs.
Result<Frame> Map(const Request& request, const OwnRows& own, const Cells& pairs,
                  const KernelContext& context) {
  Result<Table> table = Internal("every request is answered");
  switch (request.kind) {
    case Request::Kind::kCells: table = MapCells(own, *request.lambda, context); break;
    case Request::Kind::kRows: table = MapLines(own, *request.lambda, true, context); break;
    case Request::Kind::kColumns: table = MapLines(own, *request.lambda, false, context); break;
    case Request::Kind::kPairs: table = MapPairs(pairs, own, *request.lambda, context); break;
    case Request::Kind::kPatterns: return request.patterns.Apply(own.frame);
    case Request::Kind::kSeries: return request.series.Apply(own.frame);
  }
  HEDDLE_RETURN_IF_ERROR(table.status());
  return FrameOfTable(*table);
}

Result<Value> RunMap(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const Request request, GivenRequest(call));
  const Frame& frame = call.inputs[0]->frame();
  PartFailure failure;
  const Cells pairs = request.kind == Request::Kind::kPairs ? FirstColumn(frame) : Cells();
  HEDDLE_ASSIGN_OR_RETURN(
      Frame result, Map(request, {.frame = frame, .first = 0, .failure = &failure}, pairs, call.context));
  return Value(std::move(result));
}

// ---- On several ranks. Cells and rows are mapped where they are; so are pairs, for which all ranks get the
// first column, which has as many cells as a row of the result. What reads a whole column is shared out by
// columns: each goes to one rank, which needs all of its cells.

enum StageNumber { kExchange, kMap, kJoin };

bool IsByColumns(const Request& request) {
  return request.kind == Request::Kind::kColumns || request.kind == Request::Kind::kPatterns ||
         request.kind == Request::Kind::kSeries;
}

std::pair<int64_t, int64_t> ColumnsOfRank(const Frame& frame, int32_t rank, int32_t ranks) {
  return {frame.columns() * rank / ranks, frame.columns() * (rank + 1) / ranks};
}

// Some columns of a frame, with the names that they have there.
Frame NamedColumns(const Frame& frame, int64_t begin, int64_t end) {
  Schema schema = ColumnsOf(*frame.schema(), begin, end);
  schema.names.clear();
  std::vector<Column> columns;
  for (int64_t j = begin; j < end; ++j) {
    schema.names.push_back(frame.schema()->NameOf(j));
    columns.push_back(frame.column(j));
  }
  return Frame(std::make_shared<const Schema>(std::move(schema)), std::move(columns));
}

// Output 0 goes to all, those behind it to each rank.
Status Exchange(const StageCall& call, const Request& request, std::span<Value> outputs) {
  const Frame& frame = call.inputs[0]->frame();
  const bool has_pairs = request.kind == Request::Kind::kPairs;
  outputs[0] = Value(has_pairs ? NamedColumns(frame, 0, 1) : Frame());
  for (int32_t rank = 0; rank < call.ranks(); ++rank) {
    const auto [begin, end] = ColumnsOfRank(frame, rank, call.ranks());
    outputs[static_cast<size_t>(rank) + 1] =
        Value(IsByColumns(request) ? NamedColumns(frame, begin, end) : Frame());
  }
  return OkStatus();
}

Status MapStage(const StageCall& call, const Request& request, std::span<Value> outputs) {
  const auto ranks = static_cast<size_t>(call.ranks());
  const Frame& frame = call.inputs[0]->frame();
  PartFailure failure;
  Value result(frame.Rows(0, 0));
  Status status;
  const auto map = [&](const Frame& own, int64_t first, const Cells& pairs) {
    Result<Frame> mapped =
        Map(request, {.frame = own, .first = first, .failure = &failure}, pairs, call.context);
    status = mapped.status();
    if (mapped.ok()) result = Value(*std::move(mapped));
  };
  const auto [begin, end] = ColumnsOfRank(frame, call.rank, call.ranks());
  if (IsByColumns(request) && begin < end) {
    HEDDLE_ASSIGN_OR_RETURN(const Value columns, JoinRows(call.Parts(1)));
    map(columns.frame(), 0, {});
  } else if (!IsByColumns(request)) {
    const bool has_pairs = request.kind == Request::Kind::kPairs;
    map(frame, call.rows.Begin(call.rank), has_pairs ? FirstColumn(call.Received(0).frame()) : Cells());
  }
  // What has no place of its own is of this rank's columns, which are behind those of the ranks before.
  if (failure.status.ok()) failure.status = status;
  if (IsByColumns(request)) failure.place = call.rank;
  HEDDLE_ASSIGN_OR_RETURN(outputs[ranks + 1], ReportOf({&failure, 1}));
  const bool gives_rows = IsByColumns(request) && begin < end && status.ok();
  for (int32_t rank = 0; rank < call.ranks(); ++rank) {
    Value& part = outputs[static_cast<size_t>(rank)];
    part = Value(Frame());
    if (gives_rows) {
      HEDDLE_ASSIGN_OR_RETURN(part, SliceRows(result, call.rows.Begin(rank), call.rows.End(rank)));
    }
  }
  outputs[ranks] = std::move(result);
  return OkStatus();
}

Status JoinStage(const StageCall& call, const Request& request, std::span<Value> outputs) {
  HEDDLE_RETURN_IF_ERROR(FirstReportedFailure(call.Received(2)));
  outputs[0] = call.Received(1);
  if (!IsByColumns(request)) return OkStatus();
  const Frame& frame = call.inputs[0]->frame();
  std::vector<Column> columns;
  Schema schema;
  for (const Value* const part : call.Parts(0))
    for (int64_t j = 0; j < part->frame().columns(); ++j) {
      columns.push_back(part->frame().column(j));
      schema.types.push_back(columns.back().type());
    }
  schema.names = CountedNames(frame.columns());
  if (request.kind == Request::Kind::kPatterns) schema = *frame.schema();
  outputs[0] = Value(Frame(std::make_shared<const Schema>(std::move(schema)), std::move(columns)));
  return OkStatus();
}

Status RunMapStage(const StageCall& call, std::span<Value> outputs) {
  HEDDLE_ASSIGN_OR_RETURN(const Request request, GivenRequest(call.WholeCall()));
  switch (call.stage) {
    case kExchange: return Exchange(call, request, outputs);
    case kMap: return MapStage(call, request, outputs);
    default: return JoinStage(call, request, outputs);
  }
}

// Whole columns move there and back; what is mapped where it is moves nothing, but which of both the call
// asks for, only its text says.
double MovedBytes(const Node&, std::span<const ValueInfo> inputs, const RankGrid&) {
  return static_cast<double>(KnownBytes(inputs[0]));
}

constexpr Reach kOfExchange[] = {Reach::kAll, Reach::kParts},
                kOfMap[] = {Reach::kParts, Reach::kHere, Reach::kAll};
constexpr Stage kStages[] = {{.outputs = kOfExchange, .reads_inputs = true},
                             {.outputs = kOfMap, .reads_inputs = true},
                             {.reads_inputs = true}};
constexpr StagedForm kStaged = {
    .stages = kStages, .result = StagedResult::kSameRows, .moved_bytes = MovedBytes, .run = RunMapStage};

}  // namespace

/// map(F, "x -> expression", margin): a Java expression of every cell (0), row (1) or column (2).
///
/// Shapes:  F is m x n, the result m x n, strings C1 to Cn; with jaccardSim in the text m x m.
/// Errors:  kInvalidArgument for an expression that docs/map.md does not know, with its place;
///          kFailedPrecondition, with the cell, where Java would throw.
/// Cost:    an interpreter: some hundred operations a cell.
/// Rows:    every rank maps its own; whole columns go to one rank each, and their rows back.
extern constexpr Operator kMap = {.name = "map",
                                  .form = CallForm::kPositional,
                                  .parameters = "target expression margin?",
                                  .min_inputs = 2,
                                  .max_inputs = 3,
                                  .infer = InferMap,
                                  .input_use = FirstByRows,
                                  .staged = &kStaged,
                                  .run = RunMap,
                                  .may_fail = true,
                                  .takes_frames = true};

}  // namespace heddle::ops
