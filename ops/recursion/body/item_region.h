// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ops/recursion/body/recursive_body.h"
#include "ops/region/region.h"

// Fused operators of a recursive body: cell-wise items of one width as one region (ops/region/region.h),
// which knows nothing of the number of rows. The bits are those of the items one by one.
namespace heddle::ops {

/// Whether the item goes cell by cell: a region may compute it. Of operands that are no rows of its shape it
/// reads a number, or one cell, of each node or of all; or a value of its shape that all nodes share.
bool IsCellItem(const RecursiveBody& body, int32_t id);
/// Whether the item is a number that a region may fold while it computes the item's input, sum(x) of a row.
bool IsFoldItem(const RecursiveBody& body, int32_t id);

/// One fused operator: what its region reads and leaves.
struct ItemRegion {
  Region region;
  struct Input {
    int32_t item = RecursiveBody::kNone;
    bool is_number = false;  ///< One number for all nodes; else rows, maybe of one cell.
  };
  std::vector<Input> inputs;     ///< By the region's inputs.
  std::vector<int32_t> outputs;  ///< Items, by the region's outputs.
  int64_t columns = 0;
  double work = 0;  ///< At one cell, in additions.
};
ItemRegion LowerGroup(const RecursiveBody& body, int32_t group);

}  // namespace heddle::ops
