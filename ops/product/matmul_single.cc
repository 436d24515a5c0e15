// SPDX-License-Identifier: Apache-2.0
// A %*% B of floats with more than 8 columns (docs/numerics.md, section 9): chains of floats over blocks of
// kSingleBlock terms, their sums joined in doubles, each cell rounded once.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "ops/base/parallel.h"
#include "ops/product/matmul.h"
#include "ops/product/matmul_gemm.h"
#include "ops/simd/cellwise/elementwise.h"
#include "ops/simd/product/gemm.h"
#include "ops/simd/product/single_rows.h"

namespace heddle::ops {
namespace {

constexpr int64_t kTaskCells = 1 << 17;
// With fewer rows than this a product streams B row by row instead of packing it.
constexpr int64_t kFewRows = 4;

// The terms of a row of the result that make one block: cells of a row of A beside rows of a CSR B.
class BlockOfTerms {
 public:
  explicit BlockOfTerms(int64_t n)
      : chains_(static_cast<size_t>(n)),
        is_touched_(static_cast<size_t>(n)),
        touched_(static_cast<size_t>(n)) {}

  void Add(float x, int64_t row) {
    x_[count_] = x;
    rows_[count_++] = row;
  }

  // Runs the chains of the terms so far, adds them to `sums`, and forgets the terms. Where the rows have few
  // entries, most chains do not exist.
  void End(const Matrix& b, double* sums) {
    const int64_t* const offsets = b.row_offsets();
    int64_t entries = 0;
    for (int64_t i = 0; i < count_; ++i) entries += offsets[rows_[i] + 1] - offsets[rows_[i]];
    if (entries * kFewChains < static_cast<int64_t>(chains_.size()))
      EndFew(b, sums);
    else
      EndMany(b, sums);
    count_ = 0;
  }

 private:
  // Finding out which chains there are takes so many times as long as adding one to its sum.
  static constexpr int64_t kFewChains = 4;

  template <typename Visit>
  void EachEntry(const Matrix& b, const Visit& visit) {
    const int32_t* const columns = b.column_indexes();
    const float* const values = b.values<float>();
    for (int64_t i = 0; i < count_; ++i)
      for (int64_t e = b.row_offsets()[rows_[i]], end = b.row_offsets()[rows_[i] + 1]; e < end; ++e) {
        float& chain = chains_[static_cast<size_t>(columns[e])];
        chain = std::fma(x_[i], values[e], chain);
        visit(columns[e]);
      }
  }
  void EndFew(const Matrix& b, double* sums) {
    size_t touched = 0;
    EachEntry(b, [&](int32_t column) {
      uint8_t& is_touched = is_touched_[static_cast<size_t>(column)];
      touched_[touched] = column;
      touched += is_touched == 0 ? 1 : 0;
      is_touched = 1;
    });
    for (size_t t = 0; t < touched; ++t) {
      const auto column = static_cast<size_t>(touched_[t]);
      sums[column] += static_cast<double>(chains_[column]);
      chains_[column] = 0;
      is_touched_[column] = 0;
    }
  }
  void EndMany(const Matrix& b, double* sums) {
    EachEntry(b, [](int32_t) {});
    for (size_t c = 0; c < chains_.size(); ++c) sums[c] += static_cast<double>(chains_[c]);
    std::fill(chains_.begin(), chains_.end(), 0.0F);
  }

  std::array<float, kSingleBlock> x_;
  std::array<int64_t, kSingleBlock> rows_;
  int64_t count_ = 0;
  std::vector<float> chains_;  // By column of B: zeros between two blocks.
  std::vector<uint8_t> is_touched_;
  std::vector<int32_t> touched_;
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
                         BlockOfTerms& terms, double* sums) {
  if (!a.IsSparse()) {
    for (int64_t k = begin; k < end; ++k) {
      if (k % kSingleBlock == 0) terms.End(b, sums);
      terms.Add(a.data<float>()[row * a.columns() + k], k);
    }
    return terms.End(b, sums);
  }
  const auto [first, last] = Entries(a, row, begin, end);
  for (int64_t e = first, block = -1; e < last; ++e) {
    const int64_t k = a.column_indexes()[e];
    if (k / kSingleBlock != block) terms.End(b, sums);
    block = k / kSingleBlock;
    terms.Add(a.values<float>()[e], k);
  }
  terms.End(b, sums);
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

BlockOfTerms TermsOf(const Matrix& b) { return BlockOfTerms(b.IsSparse() ? b.columns() : 0); }

void MultiplyRows(const Matrix& a, const Matrix& b, int64_t row_begin, int64_t row_end, int64_t begin,
                  int64_t end, BlockOfTerms& terms, double* out) {
  const int64_t n = b.columns();
  for (int64_t i = row_begin; i < row_end; ++i, out += n) {
    std::fill_n(out, n, 0.0);
    if (b.IsSparse()) {
      MultiplyRowBySparse(a, b, i, begin, end, terms, out);
      continue;
    }
    const auto [first, last] = Entries(a, i, begin, end);
    simd::AddSparseRowOfSingles(a.values<float>() + first, a.column_indexes() + first, last - first,
                                b.data<float>(), n, n, out);
  }
}

}  // namespace

void MultiplySparseRowsOfSingles(const Matrix& a, const Matrix& b, int64_t row_begin, int64_t row_end,
                                 int64_t begin, int64_t end, double* out) {
  BlockOfTerms terms = TermsOf(b);
  MultiplyRows(a, b, row_begin, row_end, begin, end, terms, out);
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
                  BlockOfTerms terms = TermsOf(b);
                  for (int64_t i = begin; i < end && !IsCancelled(context.cancelled); ++i) {
                    MultiplyRows(a, b, i, i + 1, 0, inner, terms, sums.data());
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
