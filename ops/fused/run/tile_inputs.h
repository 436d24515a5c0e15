// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ops/base/kernel.h"
#include "ops/fused/program/tile_program.h"

namespace heddle::ops {

/// The matrices of a call as tiles read them, by input; empty where tiles do not read an input so.
struct TileInputs {
  std::vector<Matrix> doubles;  ///< An input that is read as floats only stays one of floats here.
  std::vector<Matrix> singles;  ///< Inputs of floats that products or regions read, or that a step widens
                                ///< tile by tile.
};
Status MakeTileInputs(const TileProgram& program, const KernelCall& call, TileInputs* inputs);

}  // namespace heddle::ops
