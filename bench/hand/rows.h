// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

namespace heddle::bench {

/// Loops over rows that are hand-written for one thread, compiled for AVX2 and for AVX-512 (rows.inc).
/// Matrices are row-major with n columns. Reassociation is allowed, functions are good to two units in the
/// last place.
template <typename T>
struct HandRows {
  /// out = exp(x - rowMaxs(x)) / rowSums(exp(x - rowMaxs(x)))
  void (*softmax)(const T* x, T* out, int64_t rows, int64_t n);
  /// out = (x - rowMeans(x)) / sqrt(rowMeans((x - rowMeans(x))^2) + 1e-5) * g + b; g and b are rows.
  void (*layer_norm)(const T* x, const T* g, const T* b, T* out, int64_t rows, int64_t n);
  // The same for a part of a long row, pass by pass.
  T (*highest)(const T* x, int64_t n);
  T (*exponentials)(const T* x, T highest, T* out, int64_t n);  ///< out = exp(x - highest); their sum.
  void (*scale)(T* x, T factor, int64_t n);                     ///< x = x * factor
  T (*sum)(const T* x, int64_t n);
  T (*squares)(const T* x, T mean, int64_t n);  ///< sum((x - mean)^2)
  void (*normalise)(const T* x, T mean, T factor, const T* g, const T* b, T* out, int64_t n);
};
extern const HandRows<double> kHandRowsAvx2, kHandRowsAvx512;
extern const HandRows<float> kHandRowsSingleAvx2, kHandRowsSingleAvx512;

}  // namespace heddle::bench
