// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "ops/fused/program/body_view.h"

// Rows of more columns than a column chunk (docs/numerics.md, section 2) whose aggregates are read inside, as
// softmax reads the largest cell and the sum of each row. A tile is a few thousand columns of one row, so the
// aggregate of a row is there only when all tiles of the row have been seen: what reads it belongs to the
// next *phase* over the same columns.
namespace heddle::ops {

/// True if some row aggregate is that of rows longer than a column chunk.
bool FoldsLongRows(const BodyView& view);

/// What a value that a later phase reads is kept in.
struct KeptValue {
  int result = -1;  ///< The rows of this result, which are written after the last phase that reads it.
  int kept = -1;    ///< Else an array of its own.
};

/// A body in which every cell-wise value is computed in one phase.
struct PhasedBody {
  FusedOperator fused;
  std::vector<int> phases;  ///< By node: the phase that computes it; of an aggregate the one after it.
  std::map<NodeId, KeptValue> keeps;  ///< What is read in later phases.
  int kept = 0;                       ///< Arrays of KeptValue::kept.
};

/// Values of full rows that several phases need are computed anew in each of them where that is cheap and
/// reads no more than keeping them would, else computed once and kept. Needs: roles and consumers of the
/// body.
PhasedBody DivideIntoPhases(const BodyView& view);

/// When all steps are there: which of them each phase runs, its own, and those of earlier phases that make
/// what they read.
void FinishPhases(TileProgram* program);

}  // namespace heddle::ops
