// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/distinct.h"

#include <algorithm>
#include <cmath>

namespace heddle::ops::reference {
namespace {

Matrix Filled(int64_t rows, int64_t columns) {
  Result<Matrix> result = FilledMatrix(rows, columns, 0);
  HEDDLE_CHECK(result.ok(), "reference matrices are small");
  return *std::move(result);
}

bool Same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }
bool Less(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

}  // namespace

std::vector<double> Distinct(const Matrix& x, int64_t row_begin, int64_t row_end, int64_t column_begin,
                             int64_t column_end) {
  std::vector<double> distinct;
  for (int64_t i = row_begin; i < row_end; ++i) {
    for (int64_t j = column_begin; j < column_end; ++j) {
      const double cell = x.At(i, j) == 0 ? 0 : x.At(i, j);
      size_t at = 0;
      while (at < distinct.size() && Less(distinct[at], cell)) ++at;
      if (at == distinct.size() || !Same(distinct[at], cell))
        distinct.insert(distinct.begin() + static_cast<ptrdiff_t>(at), cell);
    }
  }
  return distinct;
}

Matrix Unique(const Matrix& x) {
  const std::vector<double> distinct = Distinct(x, 0, x.rows(), 0, x.columns());
  Matrix result = Filled(static_cast<int64_t>(distinct.size()), 1);
  for (size_t i = 0; i < distinct.size(); ++i) result.mutable_data()[i] = distinct[i];
  return result;
}

Matrix UniqueOfRows(const Matrix& x) {
  size_t widest = 0;
  for (int64_t i = 0; i < x.rows(); ++i)
    widest = std::max(widest, Distinct(x, i, i + 1, 0, x.columns()).size());
  Matrix result = Filled(x.rows(), static_cast<int64_t>(widest));
  for (int64_t i = 0; i < x.rows(); ++i) {
    const std::vector<double> distinct = Distinct(x, i, i + 1, 0, x.columns());
    for (size_t k = 0; k < distinct.size(); ++k)
      result.mutable_data()[i * result.columns() + static_cast<int64_t>(k)] = distinct[k];
  }
  return result;
}

Matrix UniqueOfColumns(const Matrix& x) {
  size_t longest = 0;
  for (int64_t j = 0; j < x.columns(); ++j)
    longest = std::max(longest, Distinct(x, 0, x.rows(), j, j + 1).size());
  Matrix result = Filled(static_cast<int64_t>(longest), x.columns());
  for (int64_t j = 0; j < x.columns(); ++j) {
    const std::vector<double> distinct = Distinct(x, 0, x.rows(), j, j + 1);
    for (size_t k = 0; k < distinct.size(); ++k)
      result.mutable_data()[static_cast<int64_t>(k) * x.columns() + j] = distinct[k];
  }
  return result;
}

}  // namespace heddle::ops::reference
