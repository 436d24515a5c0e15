// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ops/fused/program/body_view.h"

namespace heddle::ops {

/// Narrower rows are treated as one flat run of cells where nothing is folded along them: loops over a short
/// row cost more than repeating its vectors.
constexpr int64_t kNarrowRow = 32;

/// Operators on a register in one unrolled row: the time to compile grows with it.
constexpr int64_t kMostUnrolled = 100;

/// How the loop of a region goes over the cells of a tile.
enum class RegionWalk : uint8_t {
  kFlat,    ///< One run of cells.
  kRows,    ///< Row by row.
  kNarrow,  ///< Several unrolled rows at a time (Region::columns).
};

/// True for rowSums and its family as far as Sink::kFoldRows does it.
bool FoldsRows(const Node& node);

/// How the cell-wise nodes `members`, all of one number of columns, are walked so that sums of rows and
/// columns of their values are folded in registers, and short vectors repeated there; kFlat where there are
/// none or where that does not pay.
RegionWalk ChooseWalk(const BodyView& view, const std::vector<NodeId>& members);

/// Region::halves: as long as little is computed memory limits, loads of half a line ask for more of it at a
/// time, and whole registers gain nothing. Lines that are stored go by whole registers.
bool ReadsByHalves(const Region& region);

/// True for operators that arithmetic limits, not memory: of a region, and of a body.
bool IsHeavy(const RegionNode& node);
bool IsHeavyNode(const BodyView& view, NodeId id);

/// True if all that the step of a region stores are large results that no later step reads.
bool GoesPastCaches(const BodyView& view, const Step& step);

}  // namespace heddle::ops
