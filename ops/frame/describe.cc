// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "ops/base/stages.h"
#include "ops/frame/arrange.h"

// What the columns of a frame are, as frames of strings.
namespace heddle::ops {
namespace {

// One row of strings, one for each column of the input.
Result<ValueInfo> InferOfColumns(const InferContext& context) {
  const ValueInfo& x = context.inputs[0];
  if (!x.IsFrame())
    return InvalidArgument("{}: the argument must be a frame, not a {}", context.node.op, Name(x.data_type));
  const int64_t columns = x.shape.columns;
  if (columns == kUnknown) return ValueInfo::OfFrame(1, nullptr);
  return ValueInfo::OfFrame(1, std::make_shared<const Schema>(Schema{
                                   std::vector<ColumnType>(static_cast<size_t>(columns), ColumnType::kString),
                                   CountedNames(columns)}));
}

// One row of `texts`.
Result<Value> RowOf(const std::vector<std::string>& texts) {
  Schema schema;
  std::vector<Column> columns;
  for (const std::string& text : texts) {
    const std::string_view cell = text;
    HEDDLE_ASSIGN_OR_RETURN(Column column, Column::OfTexts({&cell, 1}));
    columns.push_back(std::move(column));
    schema.types.push_back(ColumnType::kString);
  }
  schema.names = CountedNames(static_cast<int64_t>(texts.size()));
  return Value(Frame(std::make_shared<const Schema>(std::move(schema)), std::move(columns)));
}

Result<Value> RunColumnNames(const KernelCall& call) {
  const Schema& schema = *call.inputs[0]->frame().schema();
  std::vector<std::string> names;
  for (int64_t j = 0; j < schema.columns(); ++j) names.push_back(schema.NameOf(j));
  return RowOf(names);
}

Result<Value> RunTypeOf(const KernelCall& call) {
  std::vector<std::string> names;
  for (const ColumnType type : call.inputs[0]->frame().schema()->types) names.emplace_back(Name(type));
  return RowOf(names);
}

// Every rank has the columns, whatever rows of them.
Status RunColumnNamesStage(const StageCall& call, std::span<Value> outputs) {
  HEDDLE_ASSIGN_OR_RETURN(outputs[0], RunColumnNames(call.WholeCall()));
  return OkStatus();
}
Status RunTypeOfStage(const StageCall& call, std::span<Value> outputs) {
  HEDDLE_ASSIGN_OR_RETURN(outputs[0], RunTypeOf(call.WholeCall()));
  return OkStatus();
}
constexpr Stage kStages[] = {{.reads_inputs = true}};
constexpr StagedForm kNamesStaged = {
    .stages = kStages, .result = StagedResult::kEach, .run = RunColumnNamesStage};
constexpr StagedForm kTypesStaged = {.stages = kStages, .result = StagedResult::kEach, .run = RunTypeOfStage};

}  // namespace

/// colnames(F): the names of the columns of a frame.
///
/// Shapes:  F is m x n, the result 1 x n, strings.
/// Cost:    does not look at the cells.
extern constexpr Operator kColumnNames = {.name = "colnames",
                                          .form = CallForm::kPositional,
                                          .parameters = "F",
                                          .min_inputs = 1,
                                          .max_inputs = 1,
                                          .infer = InferOfColumns,
                                          .input_use = AllByRows,
                                          .staged = &kNamesStaged,
                                          .run = RunColumnNames,
                                          .takes_frames = true};

/// typeof(F): the types of the columns of a frame, "STRING", "FP64", ....
///
/// Shapes:  F is m x n, the result 1 x n, strings.
/// Cost:    does not look at the cells.
extern constexpr Operator kTypeOf = {.name = "typeof",
                                     .form = CallForm::kPositional,
                                     .parameters = "F",
                                     .min_inputs = 1,
                                     .max_inputs = 1,
                                     .infer = InferOfColumns,
                                     .input_use = AllByRows,
                                     .staged = &kTypesStaged,
                                     .run = RunTypeOf,
                                     .takes_frames = true};

}  // namespace heddle::ops
