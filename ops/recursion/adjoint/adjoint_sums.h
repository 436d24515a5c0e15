// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ops/recursion/adjoint/recursive_adjoint.h"

namespace heddle::ops {

/// What the nodes of one structure add to the adjoints of parameters (docs/gradient.md).
class AdjointSums {
 public:
  using Term = RecursiveAdjoint::Term;
  /// Rows of nodes that are to be added, one after the other, to rows of a parameter's adjoint.
  struct LookupRows {
    std::string parameter;
    int64_t column = 0;           ///< First cell in a row of the parameter.
    std::vector<double> numbers;  ///< Of rows of the parameter, from 1.
    Matrix rows;
  };

  /// Zeros for each of the parameters. `wanted`: of a number a matrix of one cell.
  explicit AdjointSums(const std::map<std::string, ValueInfo>& wanted) : wanted_(&wanted) {}

  /// Adds a matrix of one node, whose cells are a row.
  Status AddCells(const Term& term, const Matrix& rows, int64_t place);
  /// Adds a term of all nodes of a class, by place: `left` and `right` are their rows, `left` those of a
  /// product.
  Status Add(const Term& term, const Linearized::Class& node_class, const Matrix& left, const Matrix& right,
             const KernelSource& kernels, KernelContext& context);

  /// Sums of the parameters that have terms other than rows that are looked up.
  const std::map<std::string, Matrix>& cells() const { return cells_; }
  /// By class and term.
  std::vector<LookupRows>& lookups() { return lookups_; }

 private:
  Result<Matrix*> CellsOf(const std::string& parameter);

  const std::map<std::string, ValueInfo>* wanted_;
  std::map<std::string, Matrix> cells_;
  std::vector<LookupRows> lookups_;
};

/// Adds cells [first, first + cells) of a row to those of another that begin at `to_first`.
void AddRow(const Matrix& from, int64_t row, int64_t first, int64_t cells, Matrix* to, int64_t to_row,
            int64_t to_first);
/// Adds the cells of a dense matrix to those of another of its size.
void AddMatrix(const Matrix& from, Matrix* to);
/// A dense matrix of zeros.
Result<Matrix> ZeroCells(Shape shape, ElementType type);
/// Zeros for the adjoint of a parameter: of a number a double, in a matrix of one cell.
Result<Matrix> ZeroAdjoint(const ValueInfo& parameter);

}  // namespace heddle::ops
