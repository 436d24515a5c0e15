// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/base/kernel.h"
#include "ops/fused/program/tile_program.h"

namespace heddle::ops {

/// Computes a fused operator tile by tile in the phase that `call` names (ops/base/kernel.h), with a result
/// for each root. Dense walk: CSR inputs that cell-wise operators read are made dense tile by tile.
Status RunTiles(const TileProgram& program, const KernelCall& call, std::span<Value> results);

/// The result of one reduction, which has a tree of its own, from all its nodes: the last phase of its
/// operator.
Status FinishRoot(const TileProgram& program, const TileRoot& root, const Matrix& nodes,
                  const KernelCall& call, Value* result);
/// This rank's nodes of such a reduction as they go to the others: as the root's own "partial" has them.
Result<Matrix> ListOfRoot(const TileRoot& root, Matrix nodes);
/// The result of this rank's `nodes` of such a reduction: they themselves where others have more of them,
/// else what they come to.
Status CloseRoot(const TileProgram& program, const TileRoot& root, Matrix nodes, const KernelCall& call,
                 Value* result);
/// The results of a fused reduction from all tree nodes of its payloads.
Status FinishRoots(const TileProgram& program, const Matrix& nodes, const KernelCall& call,
                   std::span<Value> results);

}  // namespace heddle::ops
