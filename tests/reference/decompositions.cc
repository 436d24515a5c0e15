// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/decompositions.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace heddle::ops::reference {
namespace {

// Rows of numbers; At(i, j) is cell [i+1, j+1].
class Table {
 public:
  Table(int64_t rows, int64_t columns)
      : rows_(rows), columns_(columns), cells_(static_cast<size_t>(rows * columns), 0.0) {}
  explicit Table(const Matrix& x) : Table(x.rows(), x.columns()) {
    for (int64_t i = 0; i < rows_; ++i)
      for (int64_t j = 0; j < columns_; ++j) At(i, j) = x.At(i, j);
  }
  static Table Identity(int64_t n) {
    Table table(n, n);
    for (int64_t i = 0; i < n; ++i) table.At(i, i) = 1;
    return table;
  }

  double& At(int64_t i, int64_t j) { return cells_[static_cast<size_t>(i * columns_ + j)]; }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  Matrix ToMatrix() const {
    Matrix matrix = *Matrix::Dense(rows_, columns_);
    std::copy(cells_.begin(), cells_.end(), matrix.mutable_data());
    return matrix;
  }

 private:
  int64_t rows_, columns_;
  std::vector<double> cells_;
};

// Columns p and q become cos * p - sin * q and sin * p + cos * q.
void Rotate(Table& table, int64_t p, int64_t q, double cosine, double sine) {
  for (int64_t i = 0; i < table.rows(); ++i) {
    const double a = table.At(i, p), b = table.At(i, q);
    table.At(i, p) = cosine * a - sine * b;
    table.At(i, q) = sine * a + cosine * b;
  }
}

// The rotation that makes the cell [p, q] of a symmetric matrix zero (Golub, Van Loan, section 8.5).
void FindRotation(double pp, double pq, double qq, double* cosine, double* sine) {
  const double tau = (qq - pp) / (2 * pq);
  const double tangent = (tau >= 0 ? 1 : -1) / (std::abs(tau) + std::sqrt(1 + tau * tau));
  *cosine = 1 / std::sqrt(1 + tangent * tangent);
  *sine = tangent * *cosine;
}

bool IsNegative(Table& table, int64_t j) {
  double largest = 0;
  for (int64_t i = 0; i < table.rows(); ++i)
    if (std::abs(table.At(i, j)) > std::abs(largest)) largest = table.At(i, j);
  return largest < 0;
}

void Negate(Table& table, int64_t j) {
  for (int64_t i = 0; i < table.rows(); ++i) table.At(i, j) = -table.At(i, j);
}

Table Ordered(Table& table, const std::vector<int64_t>& order) {
  Table result(table.rows(), static_cast<int64_t>(order.size()));
  for (int64_t i = 0; i < table.rows(); ++i)
    for (size_t j = 0; j < order.size(); ++j) result.At(i, static_cast<int64_t>(j)) = table.At(i, order[j]);
  return result;
}

std::vector<int64_t> Numbers(int64_t n) {
  std::vector<int64_t> numbers(static_cast<size_t>(n));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

}  // namespace

std::vector<Matrix> Eigen(const Matrix& matrix) {
  Table a(matrix);
  const int64_t n = a.rows();
  Table vectors = Table::Identity(n);
  for (int round = 0; round < 60; ++round)
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        if (a.At(p, q) == 0) continue;
        double cosine, sine;
        FindRotation(a.At(p, p), a.At(p, q), a.At(q, q), &cosine, &sine);
        Rotate(a, p, q, cosine, sine);
        for (int64_t j = 0; j < n; ++j) {  // and the rows
          const double x = a.At(p, j), y = a.At(q, j);
          a.At(p, j) = cosine * x - sine * y;
          a.At(q, j) = sine * x + cosine * y;
        }
        a.At(p, q) = a.At(q, p) = 0;
        Rotate(vectors, p, q, cosine, sine);
      }
  std::vector<int64_t> order = Numbers(n);
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return a.At(i, i) < a.At(j, j); });
  Table values(n, 1);
  for (int64_t j = 0; j < n; ++j) {
    const int64_t from = order[static_cast<size_t>(j)];
    values.At(j, 0) = a.At(from, from);
    if (IsNegative(vectors, from)) Negate(vectors, from);
  }
  return {values.ToMatrix(), Ordered(vectors, order).ToMatrix()};
}

Matrix EigenAdjoint(const Matrix& values, const Matrix& v, const Matrix* adjoint_of_values,
                    const Matrix* adjoint_of_vectors) {
  const int64_t n = v.rows();
  Matrix result = *FilledMatrix(n, n, 0);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t k = 0; k < n; ++k) {
        if (adjoint_of_values != nullptr)
          result.mutable_data()[i * n + j] += adjoint_of_values->At(k, 0) * v.At(i, k) * v.At(j, k);
        for (int64_t l = 0; l < n && adjoint_of_vectors != nullptr; ++l) {
          const double gap = values.At(k, 0) - values.At(l, 0);
          const double mixed = (v.At(i, l) * v.At(j, k) + v.At(j, l) * v.At(i, k)) / 2;
          for (int64_t r = 0; r < n && gap != 0; ++r)
            result.mutable_data()[i * n + j] += adjoint_of_vectors->At(r, k) * v.At(r, l) * mixed / gap;
        }
      }
    }
  }
  return result;
}

std::vector<Matrix> SingularValues(const Matrix& matrix) {
  Table x(matrix);
  const int64_t n = x.columns(), k = std::min(x.rows(), n);
  Table v = Table::Identity(n);
  for (int round = 0; round < 60; ++round)
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        double pp = 0, pq = 0, qq = 0;
        for (int64_t i = 0; i < x.rows(); ++i) {
          pp += x.At(i, p) * x.At(i, p);
          pq += x.At(i, p) * x.At(i, q);
          qq += x.At(i, q) * x.At(i, q);
        }
        if (std::abs(pq) <= 1e-17 * std::sqrt(pp * qq)) continue;
        double cosine, sine;
        FindRotation(pp, pq, qq, &cosine, &sine);
        Rotate(x, p, q, cosine, sine);
        Rotate(v, p, q, cosine, sine);
      }
  std::vector<double> norms;
  for (int64_t j = 0; j < n; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < x.rows(); ++i) sum += x.At(i, j) * x.At(i, j);
    norms.push_back(std::sqrt(sum));
  }
  std::vector<int64_t> order = Numbers(n);
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    return norms[static_cast<size_t>(i)] > norms[static_cast<size_t>(j)];
  });
  order.resize(static_cast<size_t>(k));
  Table s(k, k);
  for (int64_t j = 0; j < k; ++j) {
    const int64_t from = order[static_cast<size_t>(j)];
    const double norm = s.At(j, j) = norms[static_cast<size_t>(from)];
    if (IsNegative(v, from)) {
      Negate(v, from);
      Negate(x, from);
    }
    for (int64_t i = 0; i < x.rows() && norm > 0; ++i) x.At(i, from) /= norm;
  }
  return {Ordered(x, order).ToMatrix(), s.ToMatrix(), Ordered(v, order).ToMatrix()};
}

std::vector<Matrix> Qr(const Matrix& matrix) {
  Table r(matrix);
  const int64_t m = r.rows(), n = r.columns();
  Table h(m, n);
  for (int64_t j = 0; j < std::min(m, n); ++j) {
    double norm = 0;
    for (int64_t i = j; i < m; ++i) norm += r.At(i, j) * r.At(i, j);
    norm = std::sqrt(norm);
    const double diagonal = r.At(j, j) > 0 ? -norm : norm;
    for (int64_t i = j; i < m; ++i) h.At(i, j) = norm == 0 ? 0 : r.At(i, j) / -diagonal;
    h.At(j, j) += norm == 0 ? 2 : 1;
    for (int64_t c = j; c < n; ++c) {
      double product = 0;
      for (int64_t i = j; i < m; ++i) product += h.At(i, j) * r.At(i, c);
      for (int64_t i = j; i < m; ++i) r.At(i, c) -= h.At(i, j) * (product / h.At(j, j));
    }
    for (int64_t i = j + 1; i < m; ++i) r.At(i, j) = 0;
  }
  return {h.ToMatrix(), r.ToMatrix()};
}

std::vector<Matrix> Lu(const Matrix& matrix) {
  Table u(matrix);
  const int64_t n = u.rows();
  Table p = Table::Identity(n), l(n, n);
  const auto swap_rows = [n](Table& table, int64_t a, int64_t b) {
    for (int64_t j = 0; j < n; ++j) std::swap(table.At(a, j), table.At(b, j));
  };
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < n; ++i)
      if (std::abs(u.At(i, k)) > std::abs(u.At(pivot, k))) pivot = i;
    for (Table* table : {&u, &p, &l}) swap_rows(*table, k, pivot);
    for (int64_t i = k + 1; i < n; ++i) {
      l.At(i, k) = u.At(i, k) / u.At(k, k);
      for (int64_t j = k; j < n; ++j) u.At(i, j) -= l.At(i, k) * u.At(k, j);
      u.At(i, k) = 0;
    }
    l.At(k, k) = 1;
  }
  return {p.ToMatrix(), l.ToMatrix(), u.ToMatrix()};
}

}  // namespace heddle::ops::reference
