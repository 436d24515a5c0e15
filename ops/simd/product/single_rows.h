// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// The inner loop of products of floats that are not packed (docs/numerics.md, section 9): chains of floats
// over blocks of kSingleBlock terms, their sums joined in doubles. AVX2.
namespace heddle::ops::simd {

/// sums[c] += the sum over blocks, ascending, of the chain of fma(values[e], b[columns[e], c], .) from +0.0
/// over the entries e of a block, ascending, for c < n. Column k belongs to block k / kSingleBlock. An
/// explicit zero counts as absent.
void AddSparseRowOfSingles(const float* values, const int32_t* columns, int64_t entries, const float* b,
                           int64_t b_stride, int64_t n, double* sums);
/// The same for a row of `count` cells, of which none is absent.
void AddRowOfSingles(const float* values, int64_t count, const float* b, int64_t b_stride, int64_t n,
                     double* sums);

}  // namespace heddle::ops::simd
