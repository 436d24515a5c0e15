// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

namespace heddle::ops::simd {

/// MultiplySparseRow (simd/sparse_rows.h) for AVX-512: most rows of B are read in one pass; the same bytes.
void MultiplySparseRowAvx512(const double* values, const int32_t* columns, int64_t entries, const double* b,
                             int64_t b_stride, int64_t n, double* out);

}  // namespace heddle::ops::simd
