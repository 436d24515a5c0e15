// SPDX-License-Identifier: Apache-2.0
#include "ops/base/split.h"

#include <algorithm>

#include "core/values/panels.h"
#include "core/values/sizes.h"

namespace heddle::ops {
namespace {

bool IsWorthSplitting(const ValueInfo& info, int64_t min_distributed_bytes) {
  return info.IsTabular() && info.shape.IsKnown() && info.shape.rows > Granule(info.shape.rows) &&
         SaturatingProduct(info.shape.Cells(), BytesOf(info.element_type)) >= min_distributed_bytes;
}

}  // namespace

bool IsSplit(RowRule rule, std::span<const RowsInput> inputs, const ValueInfo& result,
             int64_t min_distributed_bytes) {
  if (rule == RowRule::kWhole) return false;
  if (rule == RowRule::kGenerate) return IsWorthSplitting(result, min_distributed_bytes);
  if (std::any_of(inputs.begin(), inputs.end(), [&](const RowsInput& input) {
        return input.split || IsWorthSplitting(input.info, min_distributed_bytes);
      }))
    return true;
  return rule == RowRule::kRowWise && !inputs.empty() && IsWorthSplitting(result, min_distributed_bytes);
}

}  // namespace heddle::ops
