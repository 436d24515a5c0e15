// SPDX-License-Identifier: Apache-2.0
#include "ops/base/arguments.h"
#include "ops/base/kernel.h"
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

// The aggregate of that name of the first input.
Result<Value> RunAggregate(const KernelCall& call, std::string_view name, ValueInfo info) {
  Node node;
  node.op = name;
  node.inputs = {0};
  node.info = std::move(info);
  KernelContext context = call.context;
  const KernelCall inner{.node = node,
                         .phase = Phase::kWhole,
                         .inputs = call.inputs.subspan(0, 1),
                         .input_infos = call.input_infos.subspan(0, 1),
                         .context = context};
  return CatalogKernels().Run(inner);
}

Result<Value> RunSumTo(const KernelCall& call) {
  const Matrix& g = call.inputs[0]->matrix();
  Shape shape;
  HEDDLE_ASSIGN_OR_RETURN(shape.rows, GivenSize(call, 1, "rows", 1));
  HEDDLE_ASSIGN_OR_RETURN(shape.columns, GivenSize(call, 2, "cols", 1));
  if (shape == g.shape()) return Value(g);
  if (shape == Shape{1, 1}) {
    HEDDLE_ASSIGN_OR_RETURN(const Value sum,
                            RunAggregate(call, "sum", ValueInfo::OfScalar(ValueType::kDouble)));
    HEDDLE_ASSIGN_OR_RETURN(Matrix cell, FilledMatrix(1, 1, sum.scalar().AsDouble()));
    return Value(std::move(cell));
  }
  if (shape.columns == 1 && shape.rows == g.rows())
    return RunAggregate(call, "rowSums", ValueInfo::OfMatrix(shape));
  if (shape.rows == 1 && shape.columns == g.columns())
    return RunAggregate(call, "colSums", ValueInfo::OfMatrix(shape));
  return FailedPrecondition("sumTo: the cells of a {} matrix are not sums of a {} one", shape, g.shape());
}

}  // namespace

/// sumTo(G, rows, cols): the adjoint of an operand that broadcasting has repeated: G where it has rows x cols
/// cells, else its rowSums, its colSums or its sum, which rules put in its place where sizes are known.
///
/// Shapes:  G is m x n; rows is m or 1, cols is n or 1; the result is rows x cols.
/// Order:   of the aggregate that it is.
/// Cost:    reads G once.
extern constexpr Operator kSumTo = {.name = "sumTo",
                                    .parameters = "G rows cols",
                                    .min_inputs = 3,
                                    .max_inputs = 3,
                                    .infer = InferSumTo,
                                    .run = RunSumTo,
                                    .role = Role::kSumTo,
                                    .adjoints = "spreadTo(dy, G); 0; 0"};

}  // namespace heddle::ops
