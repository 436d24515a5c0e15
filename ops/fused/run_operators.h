// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/base/kernel.h"
#include "ops/fused/program/tile_program.h"

namespace heddle::ops {

/// Whether the body is to be cut where it reads compressed inputs of the call: these are read by products and
/// aggregates alone, which read codes faster than tiles decode them, and all other values have few columns,
/// so that to write them costs little. What is between the products runs as a fused operator of its own.
bool RunsByOperators(const TileProgram& program, const KernelCall& call);

/// RunTiles in that way.
Status RunByOperators(const TileProgram& program, const KernelCall& call, std::span<Value> results);

}  // namespace heddle::ops
