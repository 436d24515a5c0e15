// SPDX-License-Identifier: Apache-2.0
#include "ops/statistics/sums.h"

#include <array>

#include "ops/aggregate/aggregate.h"
#include "ops/aggregate/wide_sums.h"
#include "ops/base/arguments.h"
#include "ops/base/parallel.h"
#include "ops/cells/storage.h"

namespace heddle::ops {

Result<WideNumber> SumOf(const KernelCall& call, std::span<const Matrix> cells,
                     const std::function<double(const double* const* cells, int64_t k)>& f) {
  std::vector<const double*> data;
  for (const Matrix& matrix : cells) data.push_back(matrix.data());
  HEDDLE_ASSIGN_OR_RETURN(Matrix terms, Matrix::Dense(cells[0].rows(), cells[0].columns()));
  double* out = terms.mutable_data();
  ParallelFor(terms.cells(), 32768, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) out[k] = f(data.data(), k);
  });
  const Value value(terms);
  const std::array<const Value*, 1> inputs = {&value};
  const std::array<ValueInfo, 1> infos = {ValueInfo::OfMatrix(cells[0].shape())};
  HEDDLE_ASSIGN_OR_RETURN(const Value sum, RunFullAggregate({.node = call.node,
                                                             .phase = Phase::kWhole,
                                                             .inputs = inputs,
                                                             .input_infos = infos,
                                                             .context = call.context},
                                                            AggregateKind::kSum));
  return WideSum(terms, sum.scalar().AsDouble());
}

Result<std::vector<Matrix>> CellsOfOneShape(const KernelCall& call, std::string_view name, size_t count) {
  std::vector<Matrix> cells;
  for (size_t i = 0; i < count; ++i) {
    const Matrix& x = call.inputs[i]->matrix();
    if (x.shape() != call.inputs[0]->matrix().shape())
      return FailedPrecondition("{}: the matrices differ in shape: {} and {}", name,
                                call.inputs[0]->matrix().shape(), x.shape());
    if (x.cells() == 0) return FailedPrecondition("{}: the {} matrix has no cells", name, x.shape());
    HEDDLE_ASSIGN_OR_RETURN(Matrix dense, AsDense(x));
    cells.push_back(std::move(dense));
  }
  return cells;
}

Status CheckOneShape(const InferContext& context, std::string_view name, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, static_cast<int>(i), fmt::format("argument {}", i + 1)));
    const Shape &first = context.inputs[0].shape, &shape = context.inputs[i].shape;
    if (first.IsKnown() && shape.IsKnown() && first != shape)
      return InvalidArgument("{}: the matrices differ in shape: {} and {}", name, first, shape);
  }
  return OkStatus();
}

}  // namespace heddle::ops
