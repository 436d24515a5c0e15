// SPDX-License-Identifier: Apache-2.0
#include "ops/base/arguments.h"
#include "ops/base/kernel.h"
#include "ops/base/stages.h"
#include "ops/catalog.h"
#include "ops/cells/move_cells.h"

namespace heddle::ops {
namespace {

Result<ValueInfo> InferSumTo(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "argument 1"));
  Shape shape;
  HEDDLE_ASSIGN_OR_RETURN(shape.rows, InferSize(context, 1, "rows", kUnknown));
  HEDDLE_ASSIGN_OR_RETURN(shape.columns, InferSize(context, 2, "cols", kUnknown));
  const ValueInfo& g = context.inputs[0];
  const auto fits = [](int64_t size, int64_t given) {
    return size == kUnknown || given == kUnknown || size == given || size == 1;
  };
  if (!fits(shape.rows, g.shape.rows) || !fits(shape.columns, g.shape.columns))
    return InvalidArgument("sumTo: the cells of a {} matrix are not sums of a {} one", shape, g.shape);
  const bool is_same = shape.IsKnown() && shape == g.shape;
  return ValueInfo::OfMatrix(shape, is_same ? g.format : Format::kDense);
}

// The aggregate that the call is; empty where G has the size of the result.
std::string_view AggregateFor(const Shape& result, const Shape& g) {
  if (result == g) return {};
  if (result == Shape{1, 1}) return "sum";
  return result.columns == 1 && result.rows == g.rows ? "rowSums" : "colSums";
}

RowRule SumRowRule(const Node& node, std::span<const ValueInfo> inputs) {
  if (!node.info.IsSized() || !inputs[0].IsSized()) return RowRule::kWhole;
  const std::string_view name = AggregateFor(node.info.shape, inputs[0].shape);
  return name.empty() || name == "rowSums" ? RowRule::kRowWise : RowRule::kReduce;
}

// The call with that aggregate as its operator.
Result<Value> RunAggregate(const KernelCall& call, std::string_view name, ValueInfo info) {
  Node node;
  node.op = name;
  node.inputs = {0};
  node.info = std::move(info);
  return CatalogKernels().Run(KernelCall{.node = node,
                                         .phase = call.phase,
                                         .inputs = call.inputs.subspan(0, 1),
                                         .input_infos = call.input_infos.subspan(0, 1),
                                         .row_begin = call.row_begin,
                                         .row_end = call.row_end,
                                         .total_rows = call.total_rows,
                                         .context = call.context});
}

Result<Value> RunSumTo(const KernelCall& call) {
  Shape shape = call.node.info.shape;
  const Shape g = call.input_infos[0].shape.IsKnown() ? call.input_infos[0].shape : call.inputs[0]->shape();
  if (!call.node.info.IsSized()) {
    HEDDLE_ASSIGN_OR_RETURN(shape.rows, GivenSize(call, 1, "rows", 1));
    HEDDLE_ASSIGN_OR_RETURN(shape.columns, GivenSize(call, 2, "cols", 1));
  }
  const auto fits = [](int64_t size, int64_t of_g) { return size == of_g || size == 1; };
  if (!fits(shape.rows, g.rows) || !fits(shape.columns, g.columns))
    return FailedPrecondition("sumTo: the cells of a {} matrix are not sums of a {} one", shape, g);
  const std::string_view name = AggregateFor(shape, g);
  if (name.empty()) return *call.inputs[0];
  if (name != "sum") return RunAggregate(call, name, ValueInfo::OfMatrix(shape));
  HEDDLE_ASSIGN_OR_RETURN(Value sum, RunAggregate(call, name, ValueInfo::OfScalar(ValueType::kDouble)));
  if (call.phase == Phase::kPartial) return sum;
  HEDDLE_ASSIGN_OR_RETURN(Matrix cell, FilledMatrix(1, 1, sum.scalar().AsDouble()));
  return Value(std::move(cell));
}

}  // namespace

/// sumTo(G, rows, cols): the adjoint of an operand that broadcasting has repeated: G where it has rows x cols
/// cells, else its rowSums, its colSums or its sum, which rules put in its place where sizes are known.
///
/// Shapes:  G is m x n; rows is m or 1, cols is n or 1; the result is rows x cols.
/// Order:   of the aggregate that it is.
/// Cost:    reads G once.
/// Rows:    as of the aggregate that it is.
extern constexpr Operator kSumTo = {.name = "sumTo",
                                    .parameters = "G rows cols",
                                    .min_inputs = 3,
                                    .max_inputs = 3,
                                    .infer = InferSumTo,
                                    .row_rule = SumRowRule,
                                    .input_use = FirstByRows,
                                    .run = RunSumTo,
                                    .role = Role::kSumTo,
                                    .adjoints = "spreadTo(dy, G); 0; 0"};

}  // namespace heddle::ops
