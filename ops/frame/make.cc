// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "ops/base/arguments.h"
#include "ops/base/row_rules.h"
#include "ops/base/stages.h"
#include "ops/frame/arrange.h"
#include "ops/frame/convert.h"
#include "ops/frame/text_column.h"

// Frames made of texts, or of one row: frame() and freplicate().
namespace heddle::ops {
namespace {

// Between the elements of ["a", "b"], which is one text to all operators.
constexpr std::string_view kBetweenElements = "\u00B7";

std::vector<std::string> ElementsOf(std::string_view text) {
  std::vector<std::string> elements;
  for (size_t at; (at = text.find(kBetweenElements)) != text.npos;) {
    elements.emplace_back(text.substr(0, at));
    text.remove_prefix(at + kBetweenElements.size());
  }
  elements.emplace_back(text);
  return elements;
}

// Types of the columns as the attribute says; all strings without one.
Result<std::vector<ColumnType>> TypesOf(const Node& node, int64_t columns) {
  const Scalar* const schema = node.FindAttribute("schema");
  if (schema == nullptr) return std::vector<ColumnType>(static_cast<size_t>(columns), ColumnType::kString);
  std::vector<ColumnType> types;
  if (schema->IsString()) {
    for (const std::string& name : ElementsOf(schema->AsString())) {
      const std::optional<ColumnType> type = ParseColumnType(name);
      if (!type)
        return InvalidArgument("frame: '{}' is no type of a column", name)
            .WithNote("types are STRING, FP64, FP32, INT64, INT32, BOOLEAN and CHARACTER");
      types.push_back(*type);
    }
  }
  if (static_cast<int64_t>(types.size()) == columns) return types;
  return InvalidArgument("frame: schema names {} types for {} columns", types.size(), columns);
}

Result<ValueInfo> InferFrame(const InferContext& context) {
  const ValueInfo& data = context.inputs[0];
  if (!data.IsScalar())
    return InvalidArgument("frame: data must be a scalar or texts [\"a\", \"b\"], not a {}",
                           Name(data.data_type))
        .WithNote("as.frame(X) makes a frame of a matrix");
  HEDDLE_ASSIGN_OR_RETURN(const int64_t rows, InferSize(context, 1, "rows", kUnknown));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t columns, InferSize(context, 2, "cols", kUnknown));
  if (columns == kUnknown) return ValueInfo::OfFrame(rows, nullptr);
  HEDDLE_ASSIGN_OR_RETURN(std::vector<ColumnType> types, TypesOf(context.node, columns));
  return ValueInfo::OfFrame(rows,
                            std::make_shared<const Schema>(Schema{std::move(types), CountedNames(columns)}));
}

Result<Value> RunFrame(const KernelCall& call) {
  const Scalar& data = call.inputs[0]->scalar();
  HEDDLE_ASSIGN_OR_RETURN(const int64_t rows, GivenSize(call, 1, "rows", 0));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t columns, GivenSize(call, 2, "cols", 0));
  const Result<std::vector<ColumnType>> types = TypesOf(call.node, columns);
  if (!types.ok()) return FailedPrecondition("{}", types.status().message());
  const std::vector<std::string> elements = ElementsOf(data.ToText());
  const auto count = static_cast<int64_t>(elements.size());
  // One text for all cells, one for each column, or one for each cell by rows.
  if (count != 1 && count != columns && count != rows * columns)
    return FailedPrecondition("frame: {} texts for {} x {} cells", count, rows, columns)
        .WithNote("one text fills all cells, one for each column all rows, one for each cell goes by rows");
  Schema schema{*types, CountedNames(columns)};
  // Of a text for each cell every rank makes all rows, so that each meets the first failure: the script
  // spells them out.
  const bool is_part = call.total_rows > 0, makes_all = count == rows * columns;
  const int64_t begin = is_part && !makes_all ? call.row_begin : 0,
                end = is_part && !makes_all ? call.row_end : rows;
  std::vector<Column> made;
  for (int64_t j = 0; j < columns; ++j) {
    std::vector<std::optional<std::string>> cells;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = count == 1 ? 0 : count == columns ? j : i * columns + j;
      cells.emplace_back(elements[static_cast<size_t>(at)]);
    }
    HEDDLE_ASSIGN_OR_RETURN(const Column texts, TextColumn(cells));
    Result<Column> column = Converted(texts, schema.types[static_cast<size_t>(j)]);
    if (!column.ok() && column.status().code() == StatusCode::kFailedPrecondition)
      return FailedPrecondition("frame: column {}: {}", schema.NameOf(j), column.status().message());
    HEDDLE_RETURN_IF_ERROR(column.status());
    made.push_back(*std::move(column));
  }
  const Frame frame(std::make_shared<const Schema>(std::move(schema)), std::move(made));
  return Value(is_part && makes_all ? frame.Rows(call.row_begin, call.row_end) : frame);
}

RowRule GenerateRows(const Node&, std::span<const ValueInfo>) { return RowRule::kGenerate; }

Status WrongRow(const Shape& frame, const Shape& row) {
  if (row.rows != kUnknown && row.rows != 1)
    return InvalidArgument("freplicate: argument 2 must have one row, it has {}", row.rows);
  if (frame.columns == kUnknown || row.columns == kUnknown || frame.columns == row.columns) return OkStatus();
  return InvalidArgument("freplicate: the frame has {} columns, argument 2 has {}", frame.columns,
                         row.columns);
}

Result<ValueInfo> InferReplicate(const InferContext& context) {
  for (size_t i = 0; i < 2; ++i)
    if (!context.inputs[i].IsFrame())
      return InvalidArgument("freplicate: argument {} must be a frame, not a {}", i + 1,
                             Name(context.inputs[i].data_type));
  HEDDLE_RETURN_IF_ERROR(WrongRow(context.inputs[0].shape, context.inputs[1].shape));
  return context.inputs[0];
}

Result<Value> RunReplicate(const KernelCall& call) {
  const Frame& frame = call.inputs[0]->frame();
  const Frame& row = call.inputs[1]->frame();
  if (const Status wrong = WrongRow(frame.shape(), row.shape()); !wrong.ok())
    return FailedPrecondition("{}", wrong.message());
  std::vector<Column> columns;
  for (int64_t j = 0; j < frame.columns(); ++j) {
    const std::vector<std::optional<std::string>> cells(static_cast<size_t>(frame.rows()),
                                                        TextOfCell(row, 0, j));
    HEDDLE_ASSIGN_OR_RETURN(const Column texts, TextColumn(cells));
    Result<Column> column = Converted(texts, frame.column(j).type(), frame.column(j).MayMiss());
    if (!column.ok() && column.status().code() == StatusCode::kFailedPrecondition)
      return FailedPrecondition("freplicate: column {}: {}", frame.schema()->NameOf(j),
                                column.status().message());
    HEDDLE_RETURN_IF_ERROR(column.status());
    columns.push_back(*std::move(column));
  }
  return Value(Frame(frame.schema(), std::move(columns)));
}

}  // namespace

/// frame(data, rows, cols, schema): texts as a frame.
///
/// Shapes:  the result is rows x cols, columns C1 to Cn; strings, or what schema=["INT64", "STRING"] says.
///          data is one scalar for all cells, or one element of [...] for each column or each cell, by rows.
/// Errors:  kFailedPrecondition for another number of texts and for a text that is no cell of its type.
/// Cost:    writes the texts once.
extern constexpr Operator kFrame = {.name = "frame",
                                    .form = CallForm::kNamed,
                                    .parameters = "data rows cols @schema?",
                                    .min_inputs = 3,
                                    .max_inputs = 3,
                                    .infer = InferFrame,
                                    .row_rule = GenerateRows,
                                    .run = RunFrame,
                                    .may_fail = true};

/// freplicate(F, R): a frame of F's size and types whose rows are all R.
///
/// Shapes:  F is m x n, R 1 x n, the result m x n.
/// Errors:  kFailedPrecondition for a cell of R that is none of F's column.
/// Cost:    writes the result once.
extern constexpr Operator kReplicate = {.name = "freplicate",
                                        .form = CallForm::kPositional,
                                        .parameters = "F row",
                                        .min_inputs = 2,
                                        .max_inputs = 2,
                                        .infer = InferReplicate,
                                        .row_rule = RowWise,
                                        .input_use = FirstByRows,
                                        .run = RunReplicate,
                                        .may_fail = true,
                                        .takes_frames = true};

}  // namespace heddle::ops
