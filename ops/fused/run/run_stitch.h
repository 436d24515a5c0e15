// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/base/kernel.h"
#include "ops/fused/program/tile_program.h"

namespace heddle::ops {

class TileSteps;

/// Computes a stitch tile by tile: values with a row for each of the driver's as rows, and reductions along
/// trees of their own. kWhole: all results. kPartial: rows of the first kind and a list of tree nodes for
/// each reduction. `steps` are prepared for the call.
Status RunStitch(const TileProgram& program, const KernelCall& call, TileSteps& steps,
                 std::span<Value> results);
/// kFinish: the reductions, in their order, from such a list for each (call.inputs; nullptr for one that is
/// finished in parts).
Status FinishStitch(const TileProgram& program, const KernelCall& call, std::span<Value> results);

}  // namespace heddle::ops
