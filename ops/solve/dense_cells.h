// SPDX-License-Identifier: Apache-2.0
#pragma once

// Cells as the Eigen library holds them, for the factorizations of this folder.
// Single-threaded (it would use OpenMP, which we do not) and with fixed cache sizes, so that blocking, and
// with it every bit of a result, depends on the shapes only.
#include <string_view>

#include "ops/base/operator.h"
#include "ops/solve/eigen_library.h"

namespace heddle::ops {

using Cells = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic>;
using RowMajorCells = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Eigen otherwise asks the CPU, once. Every kernel that uses it calls this first.
void FixCacheSizes();

Result<Cells> ToEigen(const Matrix& x);

/// Evaluates an expression of Eigen's in the memory of the result.
template <typename Expression>
Result<Value> FromEigen(const Expression& cells) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(cells.rows(), cells.cols()));
  Eigen::Map<RowMajorCells>(result.mutable_data(), cells.rows(), cells.cols()) = cells;
  return Value(std::move(result));
}

/// An error with `code` that tells the shape, unless it is square or not known yet.
Status CheckSquare(std::string_view op, Shape shape, StatusCode code);

/// kFailedPrecondition that names the first cell, in the order of rows, which is NaN or infinite.
Status CheckFinite(std::string_view op, const Cells& cells);

/// kFailedPrecondition that names the first pair of cells which differ by more than `tolerance` times the
/// larger of the two or, with `of_all`, times the largest of all.
Status CheckSymmetric(std::string_view op, const Cells& cells, double tolerance, bool of_all);

Status Singular(std::string_view op, Shape shape);

/// The row of the first of the largest absolute values in column j. Its sign fixes that of a vector which is
/// determined up to its sign only.
Eigen::Index LargestInColumn(const Cells& cells, Eigen::Index j);

/// 2 m n^2 operations on an m x n input.
Cost CubicCost(const Node& node, std::span<const ValueInfo> inputs);

/// The cells of the first input in Eigen's order, and their factors.
double FactorsWorkingBytes(const Node& node, std::span<const ValueInfo> inputs);

}  // namespace heddle::ops
