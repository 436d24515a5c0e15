// SPDX-License-Identifier: Apache-2.0
#include "ops/product/transposed_singles.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>

#include "ops/product/matmul_gemm.h"
#include "ops/simd/product/gemm.h"

namespace heddle::ops {
namespace {

void AddChains(const float* chains, int64_t count, double* sums) {
  int64_t c = 0;
  for (; c + 4 <= count; c += 4)
    _mm256_storeu_pd(sums + c,
                     _mm256_add_pd(_mm256_loadu_pd(sums + c), _mm256_cvtps_pd(_mm_loadu_ps(chains + c))));
  for (; c < count; ++c) sums[c] += static_cast<double>(chains[c]);
}

}  // namespace

TransposedSingles::TransposedSingles(int64_t n, int64_t k, bool symmetric)
    : n_(n),
      k_(k),
      symmetric_(symmetric),
      chains_(static_cast<size_t>(n * k)),
      is_touched_(static_cast<size_t>(n)) {}

void TransposedSingles::Add(const float* x, int64_t x_stride, const float* y, int64_t y_stride, int64_t rows,
                            int64_t row, double* payload) {
  SingleGemm gemm{.m = n_,
                  .n = k_,
                  .a_row = 1,
                  .a_column = x_stride,
                  .b_row = y_stride,
                  .c_row = k_,
                  .upper_only = symmetric_};
  for (int64_t i = 0; i < rows; i += gemm.k) {
    const int64_t place = (row + i) % kSingleBlock;
    gemm.a = x + i * x_stride;
    gemm.b = y + i * y_stride;
    gemm.k = std::min(rows - i, kSingleBlock - place);
    if (gemm.k == kSingleBlock) {
      // Whole blocks, as many as there are.
      gemm.k = (rows - i) / kSingleBlock * kSingleBlock;
      gemm.c = payload;
      gemm.singles = nullptr;
      gemm.open = false;
      gemm.accumulate = true;
      Run(gemm);
      continue;
    }
    gemm.singles = chains_.data();
    gemm.open = true;
    gemm.accumulate = place > 0;
    Run(gemm);
    all_open_ = true;
    if (place + gemm.k == kSingleBlock) End(payload);
  }
}

void TransposedSingles::BeginRow(int64_t row, double* payload) {
  if (row % kSingleBlock == 0) End(payload);
}

float* TransposedSingles::ChainsOf(int64_t j) {
  uint8_t& is_touched = is_touched_[static_cast<size_t>(j)];
  if (is_touched == 0) touched_.push_back(j);
  is_touched = 1;
  return chains_.data() + j * k_;
}

void TransposedSingles::AddCell(float x, const float* y, int64_t k, float* chains) {
  const __m256 value = _mm256_set1_ps(x);
  int64_t c = 0;
  for (; c + 8 <= k; c += 8)
    _mm256_storeu_ps(chains + c, _mm256_fmadd_ps(value, _mm256_loadu_ps(y + c), _mm256_loadu_ps(chains + c)));
  for (; c < k; ++c) chains[c] = std::fma(x, y[c], chains[c]);
}

void TransposedSingles::End(double* payload) {
  if (all_open_) {
    AddChains(chains_.data(), n_ * k_, payload);
    all_open_ = false;
    return;
  }
  for (const int64_t j : touched_) {
    float* const chains = chains_.data() + j * k_;
    AddChains(chains, k_, payload + j * k_);
    std::fill_n(chains, k_, 0.0F);
    is_touched_[static_cast<size_t>(j)] = 0;
  }
  touched_.clear();
}

}  // namespace heddle::ops
