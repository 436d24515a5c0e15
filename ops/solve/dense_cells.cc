// SPDX-License-Identifier: Apache-2.0
#include "ops/solve/dense_cells.h"

#include <algorithm>
#include <cmath>

#include "ops/cells/storage.h"

namespace heddle::ops {

[[gnu::cold]] void LeaveEigen() { throw EigenInterrupted(); }

void FixCacheSizes() {
  static const bool fixed = [] {
    Eigen::setCpuCacheSizes(32 * 1024, 512 * 1024, 4 * 1024 * 1024);
    return true;
  }();
  (void)fixed;
}

Result<Cells> ToEigen(const Matrix& x) {
  HEDDLE_ASSIGN_OR_RETURN(const Matrix dense, AsDense(x));
  return Cells(Eigen::Map<const RowMajorCells>(dense.data(), dense.rows(), dense.columns()));
}

Status CheckSquare(std::string_view op, Shape shape, StatusCode code) {
  if (shape.rows == kUnknown || shape.columns == kUnknown || shape.rows == shape.columns) return OkStatus();
  return Status(code, fmt::format("{}: needs a square matrix, got {}", op, shape));
}

Status CheckFinite(std::string_view op, const Cells& cells) {
  if (cells.allFinite()) return OkStatus();
  const Shape shape{cells.rows(), cells.cols()};
  for (Eigen::Index i = 0; i < cells.rows(); ++i)
    for (Eigen::Index j = 0; j < cells.cols(); ++j)
      if (const double x = cells(i, j); !std::isfinite(x))
        return FailedPrecondition("{}: the {} matrix has a cell that is no finite number: [{},{}] is {}", op,
                                  shape, i + 1, j + 1, Scalar(x).ToText());
  return OkStatus();
}

Status CheckSymmetric(std::string_view op, const Cells& cells, double tolerance, bool of_all) {
  const double largest = of_all && cells.size() > 0 ? cells.cwiseAbs().maxCoeff() : 0;
  const Shape shape{cells.rows(), cells.cols()};
  for (Eigen::Index j = 0; j < cells.cols(); ++j)
    for (Eigen::Index i = 0; i < j; ++i) {
      const double a = cells(i, j), b = cells(j, i);
      if (std::abs(a - b) > tolerance * std::max({std::abs(a), std::abs(b), largest}))
        return FailedPrecondition(
            "{}: the {} matrix is not symmetric: cells [{},{}] and [{},{}] are {} and {}", op, shape, i + 1,
            j + 1, j + 1, i + 1, a, b);
    }
  return OkStatus();
}

Status Singular(std::string_view op, Shape shape) {
  return FailedPrecondition("{}: the {} matrix is singular", op, shape)
      .WithNote(
          "its columns depend on each other; adding lambda * diag(matrix(1, rows=n, cols=1)) makes it "
          "regular");
}

Eigen::Index LargestInColumn(const Cells& cells, Eigen::Index j) {
  Eigen::Index largest = 0;
  for (Eigen::Index i = 1; i < cells.rows(); ++i)
    if (std::abs(cells(i, j)) > std::abs(cells(largest, j))) largest = i;
  return largest;
}

Cost CubicCost(const Node&, std::span<const ValueInfo> inputs) {
  const Shape shape = inputs.empty() ? Shape{} : inputs[0].shape;
  if (!shape.IsKnown()) return {};
  const auto m = static_cast<double>(shape.rows);
  const auto n = static_cast<double>(shape.columns);
  return {.work = 2 * m * n * n, .bytes = 24 * m * n};
}

double FactorsWorkingBytes(const Node&, std::span<const ValueInfo> inputs) {
  return 2 * sizeof(double) * static_cast<double>(inputs[0].shape.rows) *
         static_cast<double>(inputs[0].shape.columns);
}

}  // namespace heddle::ops
