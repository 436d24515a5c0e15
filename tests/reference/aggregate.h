// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "core/values/matrix.h"

// The definitions of docs/numerics.md, section 3, as literal loops over the cells of a whole matrix. Slow,
// single-threaded, written from the page and not from the kernels: what the kernels are tested against.
namespace heddle::ops::reference {

/// T(a, b) of section 2 over leaves a..b-1: join(T(a, a + s), T(a + s, b)), s the largest power of two < b -
/// a.
template <typename Node, typename Join>
Node Tree(const std::vector<Node>& leaves, size_t a, size_t b, const Join& join) {
  if (b - a == 1) return leaves[a];
  size_t s = 1;
  while (s * 2 < b - a) s *= 2;
  return join(Tree(leaves, a, a + s, join), Tree(leaves, a + s, b, join));
}

/// "sum" "mean" "min" "max" "prod" "var" "sd" "trace".
double FullAggregate(std::string_view op, const Matrix& x);
/// "rowSums" "rowMeans" "rowMaxs" "rowMins" "rowProds" "rowVars" "rowSds" "rowIndexMax" "rowIndexMin".
Matrix RowAggregate(std::string_view op, const Matrix& x);
/// "colSums" "colMeans" "colMaxs" "colMins" "colProds" "colVars" "colSds".
Matrix ColumnAggregate(std::string_view op, const Matrix& x);
/// "cumsum" "cumprod" "cummin" "cummax".
Matrix Cumulative(std::string_view op, const Matrix& x);
/// The adjoint of X from y = op(X) and its adjoint, "cumprod" "cummin" "cummax".
Matrix CumulativeAdjoint(std::string_view op, const Matrix& x, const Matrix& y, const Matrix& dy);

}  // namespace heddle::ops::reference
