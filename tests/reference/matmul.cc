// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/matmul.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "core/values/panels.h"
#include "tests/reference/aggregate.h"

namespace heddle::ops::reference {
namespace {

using Lanes = std::array<double, 8>;

// Cells and which of them are there; a dense matrix has them all.
struct Cells {
  int64_t columns;
  std::vector<double> value;
  std::vector<bool> present;
  explicit Cells(const Matrix& matrix)
      : columns(matrix.columns()), value(matrix.cells()), present(matrix.cells(), !matrix.IsSparse()) {
    for (int64_t i = 0; i < matrix.rows(); ++i) {
      if (matrix.IsSparse())
        for (int64_t e = matrix.row_offsets()[i]; e < matrix.row_offsets()[i + 1]; ++e)
          present[i * columns + matrix.column_indexes()[e]] = true;
      for (int64_t j = 0; j < columns; ++j) value[i * columns + j] = matrix.At(i, j);
    }
  }
  size_t Place(int64_t i, int64_t j) const { return static_cast<size_t>(i * columns + j); }
};

// s += x * y over terms begin..end-1, in panels of `height` joined by the tree; term k goes to lane(k - panel
// start).
double Chain(int64_t terms, int64_t height, bool lanes,
             const std::function<void(int64_t k, double& s)>& term) {
  std::vector<Lanes> panels;
  for (int64_t k0 = 0; k0 < terms; k0 += height) {
    Lanes panel{};
    for (int64_t k = k0; k < std::min(terms, k0 + height); ++k) term(k, panel[lanes ? (k - k0) % 8 : 0]);
    panels.push_back(panel);
  }
  if (panels.empty()) return 0.0;
  const Lanes r = Tree(panels, 0, panels.size(), [](const Lanes& a, const Lanes& b) {
    Lanes sum;
    for (int i = 0; i < 8; ++i) sum[i] = a[i] + b[i];
    return sum;
  });
  return (((r[0] + r[4]) + (r[2] + r[6])) + ((r[1] + r[5]) + (r[3] + r[7]))) + 0.0;
}

// A cell of a product of floats with more than 8 columns: of each panel of `height` terms, blocks of 64; of
// each block a chain of floats; blocks joined in doubles, in order; panels by the tree. present(k): whether
// both cells are there.
float SingleCell(int64_t terms, int64_t height, const std::function<bool(int64_t k)>& present,
                 const std::function<float(int64_t k)>& left, const std::function<float(int64_t k)>& right) {
  std::vector<double> panels;
  for (int64_t k0 = 0; k0 < terms; k0 += height) {
    double panel = 0;
    for (int64_t b0 = k0; b0 < std::min(terms, k0 + height); b0 += 64) {
      float chain = 0;
      for (int64_t k = b0; k < std::min({terms, k0 + height, b0 + 64}); ++k)
        if (present(k)) chain = std::fma(left(k), right(k), chain);
      panel = panel + static_cast<double>(chain);
    }
    panels.push_back(panel);
  }
  if (panels.empty()) return 0;
  return static_cast<float>(Tree(panels, 0, panels.size(), std::plus<double>()) + 0.0);
}

}  // namespace

Matrix MultiplySingles(const Matrix& a, const Matrix& b) {
  const int64_t m = a.rows(), inner = a.columns(), n = b.columns();
  const Cells left(a), right(b);
  Matrix result = *Matrix::Dense(m, n, ElementType::kFloat32);
  const int64_t height = m * n <= 65536 && inner >= 65536 ? Granule(inner) : inner + 1;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      result.mutable_data<float>()[i * n + j] = SingleCell(
          inner, height,
          [&](int64_t k) { return left.present[left.Place(i, k)] && right.present[right.Place(k, j)]; },
          [&](int64_t k) { return static_cast<float>(left.value[left.Place(i, k)]); },
          [&](int64_t k) { return static_cast<float>(right.value[right.Place(k, j)]); });
  return result;
}

Matrix TransposedMultiplySingles(const Matrix& x, const Matrix& y) {
  const int64_t m = x.rows(), n = x.columns(), columns = y.columns();
  const Cells left(x), right(y);
  Matrix result = *Matrix::Dense(n, columns, ElementType::kFloat32);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t c = 0; c < columns; ++c)
      result.mutable_data<float>()[j * columns + c] = SingleCell(
          m, Granule(m),
          [&](int64_t i) { return left.present[left.Place(i, j)] && right.present[right.Place(i, c)]; },
          [&](int64_t i) { return static_cast<float>(left.value[left.Place(i, j)]); },
          [&](int64_t i) { return static_cast<float>(right.value[right.Place(i, c)]); });
  return result;
}

Matrix Multiply(const Matrix& a, const Matrix& b) {
  const int64_t m = a.rows(), inner = a.columns(), n = b.columns();
  const Cells left(a), right(n <= 8 ? *ToDense(b) : b);
  Matrix result = *FilledMatrix(m, n, 0.0);
  const bool panels = m * n <= 65536 && inner >= 65536;
  const int64_t height = n <= 8 ? kColumnChunk : panels ? Granule(inner) : inner + 1;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      result.mutable_data()[i * n + j] = Chain(inner, height, n <= 8, [&](int64_t k, double& s) {
        if (left.present[left.Place(i, k)] && right.present[right.Place(k, j)])
          s = std::fma(left.value[left.Place(i, k)], right.value[right.Place(k, j)], s);
      });
    }
  }
  return result;
}

Matrix TransposedMultiply(const Matrix& x, const Matrix& y) {
  const int64_t m = x.rows(), n = x.columns(), columns = y.columns();
  const Cells left(x), right(columns <= 8 ? *ToDense(y) : y);
  Matrix result = *FilledMatrix(n, columns, 0.0);
  const int64_t height = columns <= 8 ? ColumnPanelHeight(m, n) : Granule(m);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t c = 0; c < columns; ++c) {
      result.mutable_data()[j * columns + c] = Chain(m, height, n * columns <= 8, [&](int64_t i, double& s) {
        if (left.present[left.Place(i, j)] && right.present[right.Place(i, c)])
          s = std::fma(left.value[left.Place(i, j)], right.value[right.Place(i, c)], s);
      });
    }
  }
  return result;
}

}  // namespace heddle::ops::reference
