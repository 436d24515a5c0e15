// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "ops/base/kernel.h"
#include "ops/cells/decode_tile.h"
#include "ops/fused/program/tile_program.h"

namespace heddle::ops {

/// The matrices of a call as tiles read them, by input; empty where tiles do not read an input so.
struct TileInputs {
  std::vector<Matrix> doubles;  ///< An input that is read as floats only stays one of floats here, and one
                                ///< whose rows are decoded stays compressed.
  std::vector<Matrix> singles;  ///< Inputs of floats that products or regions read, or that a step widens
                                ///< tile by tile.
  std::vector<std::unique_ptr<TileDecoder<double>>> decoders;  ///< Of inputs whose rows are decoded.
};

/// True for a compressed matrix that tiles read as dense rows: each thread decodes them a few tiles ahead.
bool DecodesRows(const TileProgram& program, size_t input, const Matrix& matrix);

Status MakeTileInputs(const TileProgram& program, const KernelCall& call, TileInputs* inputs);

}  // namespace heddle::ops
