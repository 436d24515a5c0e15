// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/values/matrix.h"
#include "ops/fused/program/tile_program.h"
#include "ops/fused/rows/paired_product.h"

namespace heddle::ops {

/// Tiles begin at multiples of this in their panel: the lanes of narrow column sums go by row modulo 8.
constexpr int64_t kRowsTogether = 8;
/// What a tile of all buffers and of the inputs read twice may take: half of a second-level cache of 256 KiB.
constexpr int64_t kTileBytes = 64 << 10;

/// How large the tiles and tasks of one run are: what the program says, and what its CSR inputs make of it.
struct TileSizes {
  int64_t rows = 0;
  int64_t entries = 0;                    ///< Along a CSR driver, unless a row (or a group) has more.
  int64_t rows_together = kRowsTogether;  ///< Tiles are groups of these.
  int64_t row_work = 1;  ///< What a row costs, in cells of a dense pass: how much is one task.
  bool blocked = false;  ///< Sampled products read V by blocks (ops/sparse/gathered_rows.h).
};
TileSizes ChooseTileSizes(const TileProgram& program, const PairedProduct& pair,
                          const std::vector<Matrix>& inputs);

/// Leaves of a sum along `driver` that are one task, as one tile spans them: a power of two, 1 but for
/// blocked products.
int64_t LeavesTogether(const TileSizes& sizes, const Matrix& driver, int64_t leaves);

/// The only root, if it adds so few entries to so many leaves that most places of a leaf's payload would stay
/// zero; or null.
const Step* RootOfFewPlaces(const TileProgram& program, const std::vector<Matrix>& inputs, int64_t leaves);

}  // namespace heddle::ops
