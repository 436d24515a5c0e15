// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "ops/base/kernel.h"
#include "ops/fused/program/tile_program.h"

namespace heddle::ops {

/// True if all cells that the operator computes are functions of a cell of one compressed matrix and of
/// scalars, so that they can be computed once for each tuple of its dictionaries; aggregates of such cells
/// may be its roots.
bool RunsOnDictionaries(const TileProgram& program, const KernelCall& call);
/// Such a call, which is whole or a "partial". Results that are matrices of cells share the codes of the
/// input; aggregates are those of their own operators on such matrices.
Status RunDictionaries(const TileProgram& program, const KernelCall& call, std::span<Value> results);

}  // namespace heddle::ops
