// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "ops/fused/program/body_view.h"

// Rows of more columns than a column chunk (docs/numerics.md, section 2) whose aggregates other operators of
// the body read, as softmax reads the largest cell and the sum of each row. A tile is a few thousand columns
// of one row, so the aggregate of a row is complete only after the last tile of that row. Operators that read
// it run in the next *phase*, which is another pass over the same row. For softmax, E = exp(X - rowMaxs(X)),
// E / rowSums(E), there are three: rowMaxs(X); E and rowSums(E); the quotient.
namespace heddle::ops {

/// True if some row aggregate is that of rows longer than a column chunk.
bool FoldsLongRows(const BodyView& view);

/// Where the cells of a value wait, from the phase that computes it to the last phase that reads it.
struct SavedValue {
  int result = -1;  ///< In the rows of this result, which the last of those phases overwrites; or
  int array = -1;   ///< in this array (TileRef::Kind::kSaved).
};

/// A body in which every cell-wise value is computed in one phase.
struct PhasedBody {
  FusedOperator fused;
  std::vector<int> phases;  ///< By node: the phase that computes it; of an aggregate the one after it.
  std::map<NodeId, SavedValue> saved;  ///< Values that later phases read.
  int saved_arrays = 0;                ///< How many arrays SavedValue::array names.
};

/// Gives each operator the phases in which it runs. A value of full rows that several phases read is computed
/// in each of them where few light operators make it of inputs (reading the inputs again costs no more than
/// reading the saved value); any other is computed once and saved. Needs: roles and consumers of the body.
PhasedBody DivideIntoPhases(const BodyView& view);

/// Writes down which steps each phase runs, after the last step was made: its own, and those of earlier
/// phases that fill the buffers which they read.
void FinishPhases(TileProgram* program);

}  // namespace heddle::ops
