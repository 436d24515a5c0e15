// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ops/recursion/body/recursive_body.h"
#include "ops/region/region.h"

// Fused operators of a recursive body: cell-wise values of one width become one region (ops/region/region.h),
// a loop over the cells of a row, for any number of rows. The bits are those of the values one by one.
namespace heddle::ops {

/// Whether a region may compute the value: it is cell-wise, and each operand is a value of its shape, or a
/// number or single cell, of each node or shared.
bool IsCellValue(const RecursiveBody& body, int32_t id);
/// Whether the value is a number that a region may fold while it computes the operand: sum(x) of a row.
bool IsRowFold(const RecursiveBody& body, int32_t id);

/// One fused operator: its region, and which values that reads and stores.
struct BodyRegion {
  Region region;
  struct Input {
    int32_t value = BodyValue::kNone;
    bool is_number = false;  ///< One number for all nodes; else rows, maybe of one cell.
  };
  std::vector<Input> inputs;     ///< By the region's inputs.
  std::vector<int32_t> outputs;  ///< Values, by the region's outputs.
  int64_t columns = 0;
  double work = 0;  ///< At one cell, in additions.
};
BodyRegion LowerFusedOperator(const RecursiveBody& body, int32_t fused_operator);

}  // namespace heddle::ops
