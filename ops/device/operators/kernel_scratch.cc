// SPDX-License-Identifier: Apache-2.0
#include "ops/device/operators/kernel_scratch.h"

#include <algorithm>

#include "core/values/panels.h"
#include "core/values/sizes.h"
#include "ops/base/device_forms.h"
#include "ops/device/operators/product.h"
#include "ops/product/matmul.h"
#include "ops/product/transposed_order.h"

namespace heddle::ops {
namespace {

int64_t Known(int64_t size) { return std::max<int64_t>(size, 0); }

// The eight lanes of each chunk of each row (long_rows.cc), `arrays` times.
int64_t LanesOfChunks(int64_t rows, int64_t columns, int64_t arrays) {
  return SaturatingProduct(SaturatingProduct(rows, CeilDivide(columns, kColumnChunk)),
                           arrays * 8 * static_cast<int64_t>(sizeof(double)));
}

}  // namespace

int64_t ScratchOfKernels(const Node& node, std::span<const ValueInfo> inputs, Phase phase, int64_t rows,
                         const DeviceDescription& device) {
  const auto form = FindOperator(node.op)->run_on_device;
  const Shape& x = inputs[0].shape;
  const int64_t of_call = rows >= 0 ? std::min(rows, Known(x.rows)) : Known(x.rows);
  if (form == MultiplyOnDevice) {
    const int64_t m = Known(x.rows), inner = Known(x.columns), n = Known(inputs[1].shape.columns);
    if (IsNarrow(n)) return LanesOfChunks(of_call, inner, n);
    const DeviceProduct product = {.m = of_call,
                                   .n = n,
                                   .terms = inner,
                                   .height = SplitsInner(m, inner, n) ? Granule(inner) : inner,
                                   .type = inputs[0].element_type};
    return ScratchBytes(product, ProductLimits::Of(device), /*gives_nodes=*/false);
  }
  if (form == MultiplyTransposedOnDevice) {
    const TransposedOrder order(node, inputs, Known(x.rows), Known(x.columns),
                                Known(inputs[1].shape.columns));
    const DeviceProduct product = {.m = order.n,
                                   .n = order.k,
                                   .terms = of_call,
                                   .height = order.height,
                                   .type = inputs[0].element_type,
                                   .is_symmetric = order.symmetric};
    return ScratchBytes(product, ProductLimits::Of(device), phase == Phase::kPartial);
  }
  if (form == AggregateLongRowsOnDevice)  // Sums and squares, or extremes and places; and a flag.
    return SaturatingSum(LanesOfChunks(of_call, Known(x.columns), 2), static_cast<int64_t>(sizeof(int32_t)));
  if (form == CumulateOnDevice) {  // The fold of each granule.
    const int64_t all = Known(x.rows), granules = all == 0 ? 0 : CeilDivide(all, Granule(all));
    return SaturatingProduct(SaturatingProduct(granules, Known(x.columns)), 8);
  }
  if (form == CumsumprodOnDevice) return 8;  // The cell before a launch.
  return 0;                                  // Cells that move go straight to the result.
}

}  // namespace heddle::ops
