// SPDX-License-Identifier: Apache-2.0
// t(X) %*% Y by columns of the result, and which operands it takes as floats.
#include "ops/base/parallel.h"
#include "ops/elementwise/single_precision.h"
#include "ops/elementwise/widened_rows.h"
#include "ops/product/matmul.h"
#include "ops/reduction/reduction_tree.h"
#include "ops/simd/product/matmul.h"
#include "ops/simd/transpose.h"

namespace heddle::ops {

void AddProductByColumns(const double* x, int64_t rows, int64_t x_stride, int64_t n, const double* y,
                         int64_t y_stride, int64_t k, double* out, const simd::Prefetch& prefetch) {
  const int64_t stride = CeilDivide(n, 8) * 8;
  AlignedArray columns(k * stride);
  simd::Transpose(out, k, n, k, columns.data(), stride);
  simd::MultiplyColumns(x, rows, x_stride, n, y, y_stride, k, columns.data(), stride, prefetch);
  simd::Transpose(columns.data(), stride, k, n, out, k);
}

bool TakesSinglesTransposed(const KernelCall& call) {
  if (call.phase == Phase::kFinish || call.phase == Phase::kStage) return false;
  const Matrix &x = call.inputs[0]->matrix(), &y = call.inputs[1]->matrix();
  return HoldsSingles(x) && HoldsSingles(y) && (!IsNarrow(y.columns()) || !x.IsSparse());
}

}  // namespace heddle::ops
