// SPDX-License-Identifier: Apache-2.0
// A %*% B of floats with more than 8 columns (docs/numerics.md, section 9): chains of floats over blocks of
// kSingleBlock terms, their sums joined in doubles, each cell rounded once.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/parallel.h"
#include "ops/product/matmul.h"
#include "ops/product/matmul_gemm.h"
#include "ops/simd/elementwise.h"
#include "ops/simd/gemm.h"
#include "ops/simd/single_rows.h"

namespace heddle::ops {
namespace {

constexpr int64_t kTaskCells = 1 << 17;
// With fewer rows than this a product streams B row by row instead of packing it.
constexpr int64_t kFewRows = 4;

// Chains of a row of the result through one block of terms.
class BlockOfChains {
 public:
  explicit BlockOfChains(int64_t n) : chains_(static_cast<size_t>(n)) {}

  // Terms of x with the entries of a row of CSR B; those of one block after the other, each ended by Join.
  void Add(float x, const Matrix& b, int64_t row) {
    const int32_t* const columns = b.column_indexes();
    const float* const values = b.values<float>();
    for (int64_t e = b.row_offsets()[row], end = b.row_offsets()[row + 1]; e < end; ++e) {
      float& chain = chains_[static_cast<size_t>(columns[e])];
      chain = std::fma(x, values[e], chain);
    }
    any_ = true;
  }
  void Join(double* sums) {
    if (!any_) return;
    for (size_t c = 0; c < chains_.size(); ++c) sums[c] += static_cast<double>(chains_[c]);
    std::fill(chains_.begin(), chains_.end(), 0.0F);
    any_ = false;
  }

 private:
  std::vector<float> chains_;
  bool any_ = false;
};

// Entries of a CSR row in columns [begin, end).
std::pair<int64_t, int64_t> Entries(const Matrix& a, int64_t row, int64_t begin, int64_t end) {
  const int32_t* const columns = a.column_indexes();
  const int64_t first = a.row_offsets()[row], last = a.row_offsets()[row + 1];
  if (begin == 0 && end == a.columns()) return {first, last};
  return {std::lower_bound(columns + first, columns + last, begin) - columns,
          std::lower_bound(columns + first, columns + last, end) - columns};
}

void MultiplyRowBySparse(const Matrix& a, const Matrix& b, int64_t row, int64_t begin, int64_t end,
                         BlockOfChains& chains, double* sums) {
  if (!a.IsSparse()) {
    for (int64_t k = begin; k < end; ++k) {
      if (k % kSingleBlock == 0) chains.Join(sums);
      chains.Add(a.data<float>()[row * a.columns() + k], b, k);
    }
    return chains.Join(sums);
  }
  const auto [first, last] = Entries(a, row, begin, end);
  for (int64_t e = first, block = -1; e < last; ++e) {
    const int64_t k = a.column_indexes()[e];
    if (k / kSingleBlock != block) chains.Join(sums);
    block = k / kSingleBlock;
    chains.Add(a.values<float>()[e], b, k);
  }
  chains.Join(sums);
}

void Narrow(const double* from, int64_t count, float* to) {
  SelectedElementwiseKernels().narrow(from, to, count);
}

// Tasks are runs of columns; B is read once for each row of A.
void MultiplyFewRows(const Matrix& a, const Matrix& b, const KernelContext& context, float* out) {
  const int64_t n = b.columns(), inner = a.columns();
  ParallelFor(n, std::clamp<int64_t>(kTaskCells / std::max<int64_t>(inner, 1) / 16 * 16, 96, 4096),
              [&](int64_t begin, int64_t end) {
                if (IsCancelled(context.cancelled)) return;
                std::vector<double> sums(static_cast<size_t>(end - begin));
                for (int64_t i = 0; i < a.rows(); ++i) {
                  std::fill(sums.begin(), sums.end(), 0.0);
                  simd::AddRowOfSingles(a.data<float>() + i * inner, inner, b.data<float>() + begin, n,
                                        end - begin, sums.data());
                  Narrow(sums.data(), end - begin, out + i * n + begin);
                }
              });
}

}  // namespace

void MultiplySparseRowsOfSingles(const Matrix& a, const Matrix& b, int64_t row_begin, int64_t row_end,
                                 int64_t begin, int64_t end, double* out) {
  const int64_t n = b.columns();
  BlockOfChains chains(b.IsSparse() ? n : 0);
  for (int64_t i = row_begin; i < row_end; ++i, out += n) {
    std::fill_n(out, n, 0.0);
    if (b.IsSparse()) {
      MultiplyRowBySparse(a, b, i, begin, end, chains, out);
      continue;
    }
    const auto [first, last] = Entries(a, i, begin, end);
    simd::AddSparseRowOfSingles(a.values<float>() + first, a.column_indexes() + first, last - first,
                                b.data<float>(), n, n, out);
  }
}

Result<Matrix> MultiplyWideSingles(const Matrix& a, const Matrix& b, const KernelContext& context) {
  const int64_t m = a.rows(), n = b.columns(), inner = a.columns();
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(m, n, ElementType::kFloat32));
  float* const out = result.mutable_data<float>();
  if (a.IsSparse() || b.IsSparse()) {
    const int64_t row_work =
        a.IsSparse() ? (a.stored() / std::max<int64_t>(m, 1) + 1) * n : inner + b.stored();
    ParallelFor(m, std::max<int64_t>(1, kTaskCells / std::max<int64_t>(row_work, 1)),
                [&](int64_t begin, int64_t end) {
                  std::vector<double> sums(static_cast<size_t>(n));
                  for (int64_t i = begin; i < end && !IsCancelled(context.cancelled); ++i) {
                    MultiplySparseRowsOfSingles(a, b, i, i + 1, 0, inner, sums.data());
                    Narrow(sums.data(), n, out + i * n);
                  }
                });
  } else if (m < kFewRows) {
    MultiplyFewRows(a, b, context, out);
  } else {
    Run(SingleGemm{.m = m,
                   .n = n,
                   .k = inner,
                   .a = a.data<float>(),
                   .a_row = inner,
                   .b = b.data<float>(),
                   .b_row = n,
                   .c_row = n,
                   .singles = out,
                   .parallel = true,
                   .cancelled = context.cancelled});
  }
  return result;
}

}  // namespace heddle::ops
