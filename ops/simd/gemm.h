// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

namespace heddle::ops {

/// The innermost loop of matrix products, one copy per CPU: a block of C, `rows` x `columns`, in registers.
struct GemmKernel {
  int64_t rows;
  int64_t columns;
  /// C(r, c) = chain of fma(a[k * rows + r], b[k * columns + c], .) over k < depth, ascending, from +0.0 when
  /// `first`, else from C; plus +0.0 at the end when `last` (so that no -0.0 of an underflow remains). a and
  /// b are 64-byte aligned.
  void (*run)(int64_t depth, const double* a, const double* b, double* c, int64_t c_stride, bool first,
              bool last);
};

extern const GemmKernel kGemmAvx2;    ///< 4 x 12: 12 accumulators of 4 doubles.
extern const GemmKernel kGemmAvx512;  ///< 8 x 24: 24 accumulators of 8 doubles.

}  // namespace heddle::ops
