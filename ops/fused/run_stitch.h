// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/fused/tile_program.h"
#include "ops/kernel.h"

namespace heddle::ops {

/// Computes a stitch tile by tile in the phase that `call` names: values with a row for each of the driver's
/// as rows, and reductions along trees of their own. kWhole: all results. kPartial: rows of the first kind
/// and a list of tree nodes for each reduction. kFinish: the reductions, in their order, from such a list for
/// each (call.inputs).
Status RunStitch(const TileProgram& program, const KernelCall& call, std::span<Value> results);

}  // namespace heddle::ops
