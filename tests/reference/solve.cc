// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/solve.h"

#include <cmath>
#include <utility>
#include <vector>

namespace heddle::ops::reference {
namespace {

using Rows = std::vector<std::vector<double>>;

// The rows of A beside those of B.
Rows Beside(const Matrix& a, const Matrix& b) {
  Rows rows(static_cast<size_t>(a.rows()));
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < a.columns(); ++j) rows[static_cast<size_t>(i)].push_back(a.At(i, j));
    for (int64_t j = 0; j < b.columns(); ++j) rows[static_cast<size_t>(i)].push_back(b.At(i, j));
  }
  return rows;
}

// Makes the first columns the identity; returns the product of the pivots, with the sign of the exchanges.
long double Eliminate(Rows* rows) {
  const size_t n = rows->size();
  long double determinant = 1;  // No product of doubles leaves its range.
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t i = k; i < n; ++i)
      if (std::fabs((*rows)[i][k]) > std::fabs((*rows)[pivot][k])) pivot = i;
    if (pivot != k) {
      std::swap((*rows)[pivot], (*rows)[k]);
      determinant = -determinant;
    }
    determinant *= (*rows)[k][k];
    const double scale = (*rows)[k][k];
    if (scale == 0) return 0;
    for (double& cell : (*rows)[k]) cell /= scale;
    for (size_t i = 0; i < n; ++i) {
      const double factor = (*rows)[i][k];
      for (size_t j = 0; i != k && j < (*rows)[i].size(); ++j) (*rows)[i][j] -= factor * (*rows)[k][j];
    }
  }
  return determinant;
}

}  // namespace

Matrix Solve(const Matrix& a, const Matrix& b) {
  Rows rows = Beside(a, b);
  Eliminate(&rows);
  Matrix x = *Matrix::Dense(a.columns(), b.columns());
  for (int64_t i = 0; i < x.rows(); ++i)
    for (int64_t j = 0; j < x.columns(); ++j)
      x.mutable_data()[i * x.columns() + j] =
          rows[static_cast<size_t>(i)][static_cast<size_t>(a.columns() + j)];
  return x;
}

Matrix Inverse(const Matrix& a) {
  Matrix identity = *FilledMatrix(a.rows(), a.rows(), 0);
  for (int64_t i = 0; i < a.rows(); ++i) identity.mutable_data()[i * a.rows() + i] = 1;
  return Solve(a, identity);
}

Matrix Cholesky(const Matrix& a) {
  const int64_t n = a.rows();
  Matrix l = *FilledMatrix(n, n, 0);
  double* cells = l.mutable_data();
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      double rest = a.At(i, j);
      for (int64_t k = 0; k < j; ++k) rest -= cells[i * n + k] * cells[j * n + k];
      cells[i * n + j] = i == j ? std::sqrt(rest) : rest / cells[j * n + j];
    }
  }
  return l;
}

double Determinant(const Matrix& a) {
  Rows rows = Beside(a, *Matrix::Dense(a.rows(), 0));
  return static_cast<double>(Eliminate(&rows));
}

Matrix Cofactors(const Matrix& a, double scale) {
  const int64_t n = a.rows();
  Matrix result = *FilledMatrix(n, n, 0);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      Matrix minor = *Matrix::Dense(n - 1, n - 1);
      for (int64_t r = 0; r < n - 1; ++r)
        for (int64_t c = 0; c < n - 1; ++c)
          minor.mutable_data()[r * (n - 1) + c] = a.At(r < i ? r : r + 1, c < j ? c : c + 1);
      result.mutable_data()[i * n + j] = ((i + j) % 2 == 0 ? scale : -scale) * Determinant(minor);
    }
  }
  return result;
}

Matrix SquareRoot(const Matrix& a) {
  const auto mean = [](const Matrix& x, const Matrix& y) {
    Matrix result = *Matrix::Dense(x.rows(), x.columns());
    for (int64_t k = 0; k < x.cells(); ++k) result.mutable_data()[k] = (x.data()[k] + y.data()[k]) / 2;
    return result;
  };
  Matrix root = *FilledMatrix(a.rows(), a.columns(), 0);
  Matrix inverse = *FilledMatrix(a.rows(), a.columns(), 0);
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < a.columns(); ++j) root.mutable_data()[i * a.columns() + j] = a.At(i, j);
    inverse.mutable_data()[i * a.columns() + i] = 1;
  }
  for (int round = 0; round < 40; ++round) {
    const Matrix next = mean(root, Inverse(inverse));
    inverse = mean(inverse, Inverse(root));
    root = next;
  }
  return root;
}

}  // namespace heddle::ops::reference
