// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/reorganize.h"

#include <functional>

namespace heddle::ops::reference {
namespace {

Matrix Build(int64_t rows, int64_t columns, const std::function<double(int64_t, int64_t)>& cell) {
  Result<Matrix> result = Matrix::Dense(rows, columns);
  HEDDLE_CHECK(result.ok(), "reference matrices are small");
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) result->mutable_data()[i * columns + j] = cell(i, j);
  return *std::move(result);
}

}  // namespace

Matrix Transpose(const Matrix& x) {
  return Build(x.columns(), x.rows(), [&](int64_t i, int64_t j) { return x.At(j, i); });
}

Matrix Cbind(const std::vector<Matrix>& parts) {
  int64_t columns = 0;
  for (const Matrix& part : parts) columns += part.columns();
  return Build(parts[0].rows(), columns, [&](int64_t i, int64_t j) {
    for (const Matrix& part : parts) {
      if (j < part.columns()) return part.At(i, j);
      j -= part.columns();
    }
    return 0.0;
  });
}

Matrix Rbind(const std::vector<Matrix>& parts) {
  int64_t rows = 0;
  for (const Matrix& part : parts) rows += part.rows();
  return Build(rows, parts[0].columns(), [&](int64_t i, int64_t j) {
    for (const Matrix& part : parts) {
      if (i < part.rows()) return part.At(i, j);
      i -= part.rows();
    }
    return 0.0;
  });
}

Matrix Diag(const Matrix& x) {
  if (x.columns() == 1)
    return Build(x.rows(), x.rows(), [&](int64_t i, int64_t j) { return i == j ? x.At(i, 0) : 0.0; });
  return Build(x.rows(), 1, [&](int64_t i, int64_t) { return x.At(i, i); });
}

Matrix Regroup(const Matrix& x, int64_t groups) {
  const int64_t width = groups == 0 ? 0 : x.columns() / groups;
  Matrix result = *FilledMatrix(groups, x.rows() * width, 0);
  for (int64_t i = 0; i < x.rows(); ++i)
    for (int64_t group = 0; group < groups; ++group)
      for (int64_t k = 0; k < width; ++k)
        result.mutable_data()[group * result.columns() + i * width + k] = x.At(i, group * width + k);
  return result;
}

Matrix Rev(const Matrix& x) {
  return Build(x.rows(), x.columns(), [&](int64_t i, int64_t j) { return x.At(x.rows() - 1 - i, j); });
}

Matrix Index(const Matrix& x, int64_t rl, int64_t ru, int64_t cl, int64_t cu) {
  return Build(ru - rl + 1, cu - cl + 1, [&](int64_t i, int64_t j) { return x.At(rl - 1 + i, cl - 1 + j); });
}

Matrix IndexAssign(const Matrix& x, const Matrix& v, int64_t rl, int64_t ru, int64_t cl, int64_t cu) {
  return Build(x.rows(), x.columns(), [&](int64_t i, int64_t j) {
    const bool inside = i + 1 >= rl && i + 1 <= ru && j + 1 >= cl && j + 1 <= cu;
    if (!inside) return x.At(i, j);
    return v.cells() == 1 ? v.At(0, 0) : v.At(i + 1 - rl, j + 1 - cl);
  });
}

Matrix SpreadTo(const Matrix& g, int64_t rows, int64_t columns) {
  return Build(rows, columns,
               [&](int64_t i, int64_t j) { return g.At(g.rows() == 1 ? 0 : i, g.columns() == 1 ? 0 : j); });
}

Matrix Reshape(const Matrix& x, int64_t rows, int64_t columns, bool by_row) {
  return Build(rows, columns, [&](int64_t i, int64_t j) {
    if (by_row) {
      const int64_t k = i * columns + j;
      return x.At(k / x.columns(), k % x.columns());
    }
    const int64_t k = j * rows + i;
    return x.At(k % x.rows(), k / x.rows());
  });
}

}  // namespace heddle::ops::reference
