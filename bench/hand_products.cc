// SPDX-License-Identifier: Apache-2.0
#include <Eigen/Core>

#include "bench/hand_fusion.h"
#include "bench/hand_slices.h"
#include "core/panels.h"

namespace heddle::bench {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Cells = Eigen::Map<const RowMajor>;
using Result = Eigen::Map<RowMajor>;

constexpr int64_t kBlock = 256;  // Rows whose product with V stays in the second-level cache.
constexpr int64_t kParts = 8;    // Partial results are large: few of them.

// out = the sum over parts of the rows of part(begin, end, partial result).
template <typename Part>
void SumParts(int64_t m, int64_t rows, int64_t columns, double* out, Part part) {
  std::vector<RowMajor> parts(kParts);
  ops::ParallelFor(kParts, 1, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) {
      parts[static_cast<size_t>(p)] = RowMajor::Zero(rows, columns);
      part(m * p / kParts, m * (p + 1) / kParts, parts[static_cast<size_t>(p)]);
    }
  });
  Result result(out, rows, columns);
  result.setZero();
  for (const RowMajor& p : parts) result += p;
}

}  // namespace

void EigenProduct(const double* a, const double* b, double* out, int64_t m, int64_t k, int64_t n) {
  ops::ParallelFor(m, std::max<int64_t>(1, m / 8), [=](int64_t begin, int64_t end) {
    Result(out + begin * n, end - begin, n).noalias() = Cells(a + begin * k, end - begin, k) * Cells(b, k, n);
  });
}

void EigenSymmetric(const double* x, double* out, int64_t m, int64_t n) {
  SumParts(m, n, n, out, [=](int64_t begin, int64_t end, RowMajor& part) {
    part.selfadjointView<Eigen::Lower>().rankUpdate(Cells(x + begin * n, end - begin, n).transpose());
  });
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i + 1; j < n; ++j) out[i * n + j] = out[j * n + i];
}

void EigenLayer(const double* x, const double* w, const double* b, double* out, int64_t m, int64_t n,
                int64_t k) {
  const Eigen::Map<const Eigen::Array<double, 1, Eigen::Dynamic>> bias(b, k);
  ops::ParallelFor(CeilDivide(m, kBlock), 1, [=](int64_t first, int64_t last) {
    RowMajor product;
    for (int64_t i = first * kBlock; i < std::min(m, last * kBlock); i += kBlock) {
      const int64_t rows = std::min(kBlock, m - i);
      product.noalias() = Cells(x + i * n, rows, n) * Cells(w, n, k);
      Result(out + i * k, rows, k).array() = 1 / (1 + (-(product.array().rowwise() + bias)).exp());
    }
  });
}

double EigenSquaredError(const double* x, const double* w, const double* y, int64_t m, int64_t n, int64_t k) {
  RowMajor sum(1, 1);
  SumParts(m, 1, 1, sum.data(), [=](int64_t begin, int64_t end, RowMajor& part) {
    RowMajor product;
    for (int64_t i = begin; i < end; i += kBlock) {
      const int64_t rows = std::min(kBlock, end - i);
      product.noalias() = Cells(x + i * n, rows, n) * Cells(w, n, k);
      part(0, 0) += (product - Cells(y + i * k, rows, k)).squaredNorm();
    }
  });
  return sum(0, 0);
}

void EigenChain(const double* x, const double* v, double* out, int64_t m, int64_t n, int64_t k) {
  SumParts(m, n, k, out, [=](int64_t begin, int64_t end, RowMajor& part) {
    RowMajor product;
    for (int64_t i = begin; i < end; i += kBlock) {
      const Cells rows(x + i * n, std::min(kBlock, end - i), n);
      product.noalias() = rows * Cells(v, n, k);
      part.noalias() += rows.transpose() * product;
    }
  });
}

}  // namespace heddle::bench
