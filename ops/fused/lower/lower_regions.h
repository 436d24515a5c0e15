// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "ops/fused/lower/places.h"

namespace heddle::ops {

/// Makes the regions of a body: which cell-wise nodes one loop computes, where each operand is read, and
/// whether a value is stored for other steps or folded into a reduction at once.
class RegionMaker : public Places {
 protected:
  using Places::Places;

  /// The region of the cell-wise nodes of a stage that have so many columns, and the step that calls it; no
  /// region where there are no such nodes. `pattern`: of the nodes at the entries of the driver, otherwise of
  /// all others.
  Status MakeRegion(int stage, int64_t columns, bool pattern);

  std::vector<int> stage_;           ///< By node, as FindStages has it.
  std::set<int> sunk_;               ///< Roots that a region folds.
  std::set<NodeId> sunk_row_folds_;  ///< Row aggregates that a region computes.

 private:
  struct RegionBuilder {
    Region region;
    Step step;
    std::map<NodeId, int> values;                     // Body node -> region node, for results.
    std::map<std::pair<NodeId, Pattern>, int> reads;  // Operand -> region node.
    std::vector<TileRef> row_folds;                   // Row aggregates that the region computes.
    // Of a fold of flat cells; all folds of a region have as many.
    int EightsOf(const TileRoot& root) const {
      return step.flat && root.kind == TileRoot::Kind::kColumns ? static_cast<int>(root.n) : 1;
    }
  };

  /// True if the region must walk row by row: a vector is repeated along a row that is long enough to be
  /// walked.
  bool WalksRows(const std::vector<NodeId>& members, int64_t columns);
  static int Push(RegionBuilder* builder, RegionNode value);
  static int PushInput(RegionBuilder* builder, Access access, RegionOperand operand);
  /// Reads rows of an input or of what an earlier step made. A region reads floats itself.
  int PushCells(RegionBuilder* builder, Access access, NodeId input, bool contiguous);
  /// The region's node for operand i of member `id`.
  Result<int> Operand(RegionBuilder* builder, NodeId id, size_t i);
  Status AddMember(RegionBuilder* builder, NodeId id);
  void AddOutputs(RegionBuilder* builder, NodeId id);
  void SinkRowFold(RegionBuilder* builder, NodeId id, NodeId fold);
  bool CanSink(const RegionBuilder& builder, const TileRoot& root) const;

  // Buffers of column vectors whose cells are repeated, by vector and how often.
  std::map<std::pair<NodeId, int64_t>, TileRef> expanded_;
};

}  // namespace heddle::ops
