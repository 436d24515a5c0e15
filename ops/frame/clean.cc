// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <memory>

#include "ops/base/row_rules.h"
#include "ops/base/stages.h"
#include "ops/cells/storage.h"
#include "ops/frame/arrange.h"
#include "ops/frame/cell_types.h"
#include "ops/frame/convert.h"
#include "ops/frame/part_failures.h"
#include "ops/frame/text_column.h"
#include "ops/text/java_text.h"

// Frames whose cells are checked against types and lengths: detectSchema, applySchema, dropInvalidType,
// dropInvalidLength.
namespace heddle::ops {
namespace {

Status RequireFrame(const InferContext& context, size_t i) {
  const ValueInfo& x = context.inputs[i];
  if (x.IsFrame()) return OkStatus();
  return InvalidArgument("{}: argument {} must be a frame, not a {}", context.node.op, i + 1,
                         Name(x.data_type));
}

// Columns of F against those of the row that says what they should be.
Status RequireColumns(const InferContext& context) {
  const int64_t n = context.inputs[0].shape.columns;
  const Shape& row = context.inputs[1].shape;
  if (row.rows != kUnknown && row.rows < 1)
    return InvalidArgument("{}: argument 2 has no row", context.node.op);
  if (n == kUnknown || row.columns == kUnknown || n == row.columns) return OkStatus();
  return InvalidArgument("{}: the frame has {} columns, argument 2 has {}", context.node.op, n, row.columns);
}

Status RequireColumns(const KernelCall& call) {
  const Shape row = call.inputs[1]->shape();
  const int64_t n = call.inputs[0]->shape().columns;
  if (row.rows < 1) return FailedPrecondition("{}: argument 2 has no row", call.node.op);
  if (row.columns == n) return OkStatus();
  return FailedPrecondition("{}: the frame has {} columns, argument 2 has {}", call.node.op, n, row.columns);
}

Result<ValueInfo> InferDetectSchema(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireFrame(context, 0));
  const int64_t columns = context.inputs[0].shape.columns;
  return ValueInfo::OfFrame(1, columns == kUnknown ? nullptr : SchemaOfTexts(columns));
}

// One row: the names of the types.
Result<Value> SchemaRow(std::span<const std::string> names) {
  std::vector<Column> columns;
  for (const std::string& one : names) {
    const std::optional<std::string> name(one);
    HEDDLE_ASSIGN_OR_RETURN(Column column, TextColumn({&name, 1}));
    columns.push_back(std::move(column));
  }
  return Value(Frame(SchemaOfTexts(static_cast<int64_t>(names.size())), std::move(columns)));
}

Result<Value> RunDetectSchema(const KernelCall& call) {
  const Frame& frame = call.inputs[0]->frame();
  std::vector<std::string> names;
  for (int64_t j = 0; j < frame.columns(); ++j) {
    if (IsCancelled(call.context.cancelled)) return Cancelled("detectSchema");
    names.push_back(DetectedCells::Of(frame, j, /*is_part=*/false).NameInSchema());
  }
  return SchemaRow(names);
}

// What each rank finds in its rows goes to all, which put it together.
Status RunDetectSchemaStage(const StageCall& call, std::span<Value> outputs) {
  if (call.stage == 0) {
    const Frame& frame = call.inputs[0]->frame();
    HEDDLE_ASSIGN_OR_RETURN(Matrix found, Matrix::Dense(1, frame.columns() * DetectedCells::kNumbers));
    for (int64_t j = 0; j < frame.columns(); ++j) {
      if (IsCancelled(call.context.cancelled)) return Cancelled("detectSchema");
      DetectedCells::Of(frame, j, /*is_part=*/true).Write(found.mutable_data() + j * DetectedCells::kNumbers);
    }
    outputs[0] = Value(std::move(found));
    return OkStatus();
  }
  const Matrix& found = call.Received(0).matrix();
  std::vector<std::string> names;
  for (int64_t first = 0; first < found.columns(); first += DetectedCells::kNumbers) {
    DetectedCells all = DetectedCells::Read(found.data() + first);
    for (int64_t rank = 1; rank < found.rows(); ++rank)
      all.Append(DetectedCells::Read(found.data() + rank * found.columns() + first));
    names.push_back(all.NameInSchema());
  }
  HEDDLE_ASSIGN_OR_RETURN(outputs[0], SchemaRow(names));
  return OkStatus();
}

constexpr Reach kFound[] = {Reach::kAll};
constexpr Stage kDetectStages[] = {{.outputs = kFound, .reads_inputs = true}, {}};
constexpr StagedForm kDetectStaged = {
    .stages = kDetectStages, .result = StagedResult::kEach, .run = RunDetectSchemaStage};

Result<ValueInfo> InferApplySchema(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireFrame(context, 0));
  HEDDLE_RETURN_IF_ERROR(RequireFrame(context, 1));
  HEDDLE_RETURN_IF_ERROR(RequireColumns(context));
  ValueInfo info = ValueInfo::OfFrame(context.inputs[0].shape.rows, nullptr);
  info.shape = context.inputs[0].shape;
  return info;
}

// The column without those cells that `drop` says: they are missing, or 0 or FALSE where numbers and booleans
// cannot be missing.
template <typename Drop>
Result<Column> Without(const Frame& frame, int64_t j, const Drop& drop) {
  const Column old = frame.column(j);
  const bool may_miss = old.MayMiss() || old.storage() == ColumnStorage::kTexts;
  HEDDLE_ASSIGN_OR_RETURN(Column column, Column::Make(old.type(), old.rows(), old.text_bytes(), may_miss));
  int64_t at = 0;
  if (column.storage() == ColumnStorage::kTexts) column.mutable_offsets()[0] = 0;
  for (int64_t i = 0; i < old.rows(); ++i) {
    const std::optional<std::string> text = TextOfCell(frame, i, j);
    const bool missing = !text || drop(*text);
    if (may_miss) column.mutable_missing()[i] = missing;
    switch (old.storage()) {
      case ColumnStorage::kDoubles: column.mutable_doubles()[i] = missing ? 0 : old.doubles()[i]; break;
      case ColumnStorage::kIntegers: column.mutable_integers()[i] = missing ? 0 : old.integers()[i]; break;
      case ColumnStorage::kBooleans: column.mutable_booleans()[i] = missing ? 0 : old.booleans()[i]; break;
      case ColumnStorage::kTexts:
        if (!missing) {
          std::copy(text->begin(), text->end(), column.mutable_texts() + at);
          at += static_cast<int64_t>(text->size());
        }
        column.mutable_offsets()[i + 1] = at;
        break;
    }
  }
  return column;
}

// Of a failure, `column_of_failure` is the column that has it.
Result<Value> ApplySchema(const KernelCall& call, int64_t* column_of_failure) {
  HEDDLE_RETURN_IF_ERROR(RequireColumns(call));
  const Frame& frame = call.inputs[0]->frame();
  auto schema = std::make_shared<Schema>(*frame.schema());
  std::vector<Column> columns;
  for (int64_t j = 0; j < frame.columns(); ++j) {
    *column_of_failure = j;
    const auto [name, may_be_empty] = TypeInSchema(call.inputs[1]->frame(), j);
    const std::optional<ColumnType> type = ParseColumnType(name);
    if (!type) return FailedPrecondition("applySchema: '{}' is no type of a column", name);
    Column given = frame.column(j);
    if (may_be_empty) {
      HEDDLE_ASSIGN_OR_RETURN(given, Without(frame, j, [](const std::string& text) { return text.empty(); }));
    }
    Result<Column> column = Converted(given, *type, may_be_empty);
    if (!column.ok() && column.status().code() == StatusCode::kFailedPrecondition)
      return FailedPrecondition("applySchema: column {}: {}", frame.schema()->NameOf(j),
                                column.status().message());
    HEDDLE_RETURN_IF_ERROR(column.status());
    schema->types[static_cast<size_t>(j)] = *type;
    columns.push_back(*std::move(column));
  }
  return Value(Frame(std::move(schema), std::move(columns)));
}

Result<Value> RunApplySchema(const KernelCall& call) {
  int64_t column_of_failure = 0;
  return ApplySchema(call, &column_of_failure);
}

Status RunApplySchemaStage(const StageCall& call, std::span<Value> outputs) {
  if (call.stage == 1) return GiveReported(call, outputs);
  int64_t column_of_failure = 0;
  Result<Value> rows = ApplySchema(call.WholeCall(), &column_of_failure);
  return MakeReported(std::move(rows), column_of_failure, 0, outputs);
}

constexpr StagedForm kApplyStaged = {
    .stages = kReportingStages, .result = StagedResult::kSameRows, .run = RunApplySchemaStage};

Result<ValueInfo> InferDropInvalidType(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireFrame(context, 0));
  HEDDLE_RETURN_IF_ERROR(RequireFrame(context, 1));
  HEDDLE_RETURN_IF_ERROR(RequireColumns(context));
  return context.inputs[0];
}

// Of a column that should be `wanted`: true if the text is none of its cells. Only the kind of number
// counts, not its width, and 0 and 1 are numbers of every kind.
bool IsInvalid(const std::string& text, std::string_view wanted) {
  const std::optional<ColumnType> type = TypeOfText(Plain(text));
  if (!type) return true;
  const bool number = wanted == "FP" || wanted == "INT";
  if (number && *type == ColumnType::kBoolean) return false;
  return Name(*type).find(wanted) == std::string_view::npos;
}

Result<Value> RunDropInvalidType(const KernelCall& call) {
  HEDDLE_RETURN_IF_ERROR(RequireColumns(call));
  const Frame& frame = call.inputs[0]->frame();
  std::vector<Column> columns;
  for (int64_t j = 0; j < frame.columns(); ++j) {
    std::string wanted = TypeInSchema(call.inputs[1]->frame(), j).name;
    for (const std::string_view kind : {"FP", "INT", "STRING"})
      if (wanted.find(kind) != std::string::npos) {
        wanted = kind;
        break;
      }
    if (wanted == "STRING") {
      columns.push_back(frame.column(j));
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(
        Column column, Without(frame, j, [&](const std::string& text) { return IsInvalid(text, wanted); }));
    columns.push_back(std::move(column));
  }
  return Value(Frame(frame.schema(), std::move(columns)));
}

Result<ValueInfo> InferDropInvalidLength(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireFrame(context, 0));
  if (!context.inputs[1].IsMatrix())
    return InvalidArgument("dropInvalidLength: argument 2 must be a matrix, not a {}",
                           Name(context.inputs[1].data_type));
  HEDDLE_RETURN_IF_ERROR(RequireColumns(context));
  return context.inputs[0];
}

Result<Value> RunDropInvalidLength(const KernelCall& call) {
  HEDDLE_RETURN_IF_ERROR(RequireColumns(call));
  const Frame& frame = call.inputs[0]->frame();
  std::vector<Column> columns;
  for (int64_t j = 0; j < frame.columns(); ++j) {
    const double most = call.inputs[1]->matrix().At(0, j);
    if (most == -1) {
      columns.push_back(frame.column(j));
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(Column column, Without(frame, j, [&](const std::string& text) {
                              return static_cast<double>(ToUtf16(text).size()) > std::trunc(most);
                            }));
    columns.push_back(std::move(column));
  }
  return Value(Frame(frame.schema(), std::move(columns)));
}

}  // namespace

/// detectSchema(F): the narrowest types that the cells of the columns fit, as texts; with the mark "·n" where
/// some are empty.
///
/// Shapes:  F is m x n, the result 1 x n, strings.
/// Cost:    reads every cell of columns of strings and FP64 once.
extern constexpr Operator kDetectSchema = {.name = "detectSchema",
                                           .form = CallForm::kPositional,
                                           .parameters = "F",
                                           .min_inputs = 1,
                                           .max_inputs = 1,
                                           .infer = InferDetectSchema,
                                           .input_use = AllByRows,
                                           .staged = &kDetectStaged,
                                           .run = RunDetectSchema,
                                           .takes_frames = true};

/// applySchema(F, S): the columns as columns of the types that the row S names; empty and missing texts are
/// missing where the type has the mark "·n", and 0 or FALSE in other columns of numbers and booleans.
///
/// Shapes:  F is m x n, S 1 x n strings, the result m x n.
/// Errors:  kFailedPrecondition for a name that is none and a cell that does not fit (Converted).
/// Cost:    a copy of every column that changes.
extern constexpr Operator kApplySchema = {.name = "applySchema",
                                          .form = CallForm::kPositional,
                                          .parameters = "F schema",
                                          .min_inputs = 2,
                                          .max_inputs = 2,
                                          .infer = InferApplySchema,
                                          .input_use = FirstByRows,
                                          .staged = &kApplyStaged,
                                          .run = RunApplySchema,
                                          .may_fail = true,
                                          .takes_frames = true};

/// dropInvalidType(F, S): cells that are none of the type that S names for their column become missing, or 0
/// or FALSE in a column of numbers or booleans whose type was not applied with the mark "·n".
///
/// Shapes:  F is m x n, S 1 x n strings, the result m x n with the types of F.
/// Cost:    reads the text of every cell once, columns of strings in S left out.
extern constexpr Operator kDropInvalidType = {.name = "dropInvalidType",
                                              .form = CallForm::kPositional,
                                              .parameters = "F schema",
                                              .min_inputs = 2,
                                              .max_inputs = 2,
                                              .infer = InferDropInvalidType,
                                              .row_rule = RowWise,
                                              .input_use = FirstByRows,
                                              .run = RunDropInvalidType,
                                              .may_fail = true,
                                              .takes_frames = true};

/// dropInvalidLength(F, L): cells whose text is longer than L[1, j] (UTF-16 units) become what
/// dropInvalidType makes of wrong ones; -1 lets a column as it is.
///
/// Shapes:  F is m x n, L 1 x n numbers, the result m x n with the types of F.
/// Cost:    reads the text of every cell once.
extern constexpr Operator kDropInvalidLength = {.name = "dropInvalidLength",
                                                .form = CallForm::kPositional,
                                                .parameters = "F lengths",
                                                .min_inputs = 2,
                                                .max_inputs = 2,
                                                .infer = InferDropInvalidLength,
                                                .row_rule = RowWise,
                                                .input_use = FirstByRows,
                                                .run = RunDropInvalidLength,
                                                .may_fail = true,
                                                .takes_frames = true};

}  // namespace heddle::ops
