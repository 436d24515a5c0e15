// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ops/base/kernel.h"
#include "ops/fused/program/tile_program.h"

namespace heddle::ops {

/// The matrices of a call in the forms that tiles read, by input; empty where an input is none of these.
struct TileInputs {
  std::vector<Matrix> doubles;  ///< But what is only read as floats stays floats.
  std::vector<Matrix> singles;  ///< Floats of the inputs that products or regions read, or a step widens tile
                                ///< by tile.
};
Status MakeTileInputs(const TileProgram& program, const KernelCall& call, TileInputs* inputs);

}  // namespace heddle::ops
