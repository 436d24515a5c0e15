// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/select.h"

#include <cmath>
#include <functional>

#include "core/values/panels.h"

namespace heddle::ops::reference {
namespace {

Matrix Filled(int64_t rows, int64_t columns) {
  Result<Matrix> result = FilledMatrix(rows, columns, 0);
  HEDDLE_CHECK(result.ok(), "reference matrices are small");
  return *std::move(result);
}

// a < b with every NaN above everything else.
bool Less(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

// T(a, b) of docs/numerics.md, section 2.
double Tree(int64_t a, int64_t b, const std::function<double(int64_t)>& leaf) {
  if (b - a == 1) return leaf(a);
  int64_t s = 1;
  while (s * 2 < b - a) s *= 2;
  return Tree(a, a + s, leaf) + Tree(a + s, b, leaf);
}

}  // namespace

std::vector<int64_t> Kept(const Matrix& x, bool rows, const Matrix* select) {
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < (rows ? x.rows() : x.columns()); ++i) {
    bool keep = false;
    if (select != nullptr) {
      keep = (rows ? select->At(i, 0) : select->At(0, i)) != 0;
    } else {
      for (int64_t j = 0; j < (rows ? x.columns() : x.rows()); ++j)
        keep |= (rows ? x.At(i, j) : x.At(j, i)) != 0;
    }
    if (keep) kept.push_back(i);
  }
  return kept;
}

std::vector<int64_t> SortedRows(const Matrix& x, const std::vector<int64_t>& columns, bool decreasing) {
  const auto before = [&](int64_t a, int64_t b) {
    for (int64_t column : columns) {
      const double p = x.At(a, column);
      const double q = x.At(b, column);
      if (Less(p, q)) return !decreasing;
      if (Less(q, p)) return decreasing;
    }
    return false;
  };
  std::vector<int64_t> sorted;
  for (int64_t i = 0; i < x.rows(); ++i) {
    size_t at = sorted.size();
    while (at > 0 && before(i, sorted[at - 1])) --at;
    sorted.insert(sorted.begin() + static_cast<ptrdiff_t>(at), i);
  }
  return sorted;
}

Matrix Table(const Matrix& a, const std::vector<double>& b, const std::vector<double>& w, int64_t rows,
             int64_t columns) {
  Matrix result = Filled(rows, columns);
  const int64_t height = Granule(a.rows());
  const int64_t panels = CeilDivide(a.rows(), height);
  if (panels == 0) return result;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      result.mutable_data()[i * columns + j] = Tree(0, panels, [&](int64_t panel) {
        double sum = 0;
        for (int64_t row = panel * height; row < std::min(a.rows(), (panel + 1) * height); ++row) {
          for (int64_t column = 0; column < a.columns(); ++column) {
            const auto k = static_cast<size_t>(row * a.columns() + column);
            if (std::isnan(w[k])) continue;
            if (std::trunc(a.At(row, column)) == static_cast<double>(i + 1) &&
                std::trunc(b[k]) == static_cast<double>(j + 1))
              sum += w[k];
          }
        }
        return sum;
      });
    }
  }
  return result;
}

Value TableAdjoint(const Matrix& a, const Value& b, const Value& weights, const Matrix& table) {
  const auto cell = [](const Value& value, int64_t i) {
    return value.IsMatrix() ? value.matrix().At(i, 0) : value.scalar().AsDouble();
  };
  Matrix result = *FilledMatrix(a.rows(), 1, 0);
  double sum = 0;
  for (int64_t i = 0; i < a.rows(); ++i) {
    const double row = a.At(i, 0), column = cell(b, i), weight = cell(weights, i);
    const bool counts = row < static_cast<double>(table.rows() + 1) &&
                        column < static_cast<double>(table.columns() + 1) && !std::isnan(weight);
    if (!counts) continue;
    result.mutable_data()[i] = table.At(static_cast<int64_t>(row) - 1, static_cast<int64_t>(column) - 1);
    sum += result.At(i, 0);
  }
  return weights.IsMatrix() ? Value(result) : Value(Scalar(sum));
}

Matrix Replace(const Matrix& x, double pattern, double replacement) {
  Matrix result = Filled(x.rows(), x.columns());
  for (int64_t i = 0; i < x.rows(); ++i) {
    for (int64_t j = 0; j < x.columns(); ++j) {
      const double cell = x.At(i, j);
      const bool same = std::isnan(pattern) ? std::isnan(cell) : cell == pattern;
      result.mutable_data()[i * x.columns() + j] = same ? replacement : cell;
    }
  }
  return result;
}

std::vector<Matrix> ClassMeet(const Matrix& a, const Matrix& b) {
  const int64_t both = std::min(a.columns(), b.columns()), width = std::max(a.columns(), b.columns());
  std::vector<Matrix> results = {*FilledMatrix(a.rows(), width, 0), *FilledMatrix(a.rows(), width, 0)};
  for (int64_t i = 0; i < a.rows(); ++i) {
    const int64_t row_of_b = b.rows() == 1 ? 0 : i;
    const auto are_together = [&](int64_t j, int64_t k) {
      return a.At(i, j) == a.At(i, k) && b.At(row_of_b, j) == b.At(row_of_b, k);
    };
    double classes = 0;
    for (int64_t j = 0; j < both; ++j) {
      if (a.At(i, j) == 0 || b.At(row_of_b, j) == 0) continue;
      double number = 0, size = 0;
      for (int64_t k = 0; k < both; ++k) {
        if (!are_together(j, k)) continue;
        size += 1;
        if (number == 0 && k < j) number = results[0].At(i, k);
      }
      results[0].mutable_data()[i * width + j] = number == 0 ? ++classes : number;
      results[1].mutable_data()[i * width + j] = size;
    }
  }
  return results;
}

}  // namespace heddle::ops::reference
