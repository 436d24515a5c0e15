// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "core/values/panels.h"
#include "ops/fused/lower/long_rows.h"
#include "ops/fused/lower/row_background.h"
#include "ops/fused/program/body_view.h"

namespace heddle::ops {

/// Where the values of a body are while a tile is computed. A place that something asks for first gets the
/// step that fills it.
class Places : public BodyView {
 protected:
  using Kind = TileRef::Kind;
  Places(FusedOperator fused, const Processor& processor);

  TileRef& PlaceOf(NodeId id) { return places_[Index(id)]; }
  /// A value at the entries of a CSR driver.
  bool IsPattern(NodeId id) const {
    return program_.by_pattern && (program_.has_background ? by_entry_[Index(id)] : HasDriversShape(id));
  }
  /// Such a value whose background is not always 0.
  bool HasBackground(NodeId id) const {
    return program_.has_background && backgrounds_[Index(id)] != kNoNode;
  }
  TileRef BackgroundPlace(NodeId id) const {
    return HasBackground(id) ? places_[Index(backgrounds_[Index(id)])] : TileRef();
  }
  /// True for the column that holds the background of another value.
  bool IsBackground(NodeId id) const {
    return std::find(backgrounds_.begin(), backgrounds_.end(), id) != backgrounds_.end();
  }

  /// Replaces the body by one in phases, or by one with values at the entries of its driver.
  Status Take(PhasedBody body);
  void Take(BodyWithBackgrounds body);
  /// Gives places to inputs and to aggregates of long rows, and makes the step that finds the entries which
  /// CSR inputs share with the driver.
  void PlaceInputs();
  /// Values of an operand at the driver's entries.
  TileRef PatternPlace(NodeId input, Pattern pattern);
  int NewBuffer(int64_t columns) {
    program_.buffers.push_back(columns);
    return static_cast<int>(program_.buffers.size()) - 1;
  }
  /// A place for what a step makes. `only_result`: a region computes it and no other step reads it, so the
  /// region writes it as floats; the floats of other results are made at the end.
  TileRef NewPlace(NodeId id, bool only_result = false);
  int64_t StrideOf(const TileRef& ref) const;
  /// Where the dense cells of a value are, as doubles; CSR inputs are made dense, and floats widened, when
  /// first asked for, and values at entries spread.
  TileRef DensePlace(NodeId id);
  /// The same without gaps between rows.
  TileRef ContiguousPlace(NodeId id);
  /// The rows of a product's operand, to `from` of its step: a CSR input is read as it is (absent cells are
  /// skipped), values at entries there, everything else dense.
  Status ReadForProduct(NodeId id, Step* step, int* csr_input);
  /// Rows of an input of floats are read where they are, by steps that widen them a few at a time (or compute
  /// in floats).
  bool IsReadAsSingles(NodeId id) const {
    return IsInput(id) && IsSingle(id) && !IsCsrInput(id) && Columns(id) <= kColumnChunk;
  }
  TileRef SinglesPlace(NodeId id);
  /// Moves backgrounds to the stage of their operands, so that they are there when their values are.
  void HastenBackgrounds(std::vector<int>* stages) const;
  /// The last steps of a CSR result with the driver's entries: its values, and its backgrounds where those
  /// may not be 0.
  void FinishPatterned(NodeId root, const TileRef& result);
  /// Rounds what a step that is no region computed, as if it had been stored as floats.
  void RoundIfSingle(const TileRef& place, int64_t columns) {
    if (program_.single)
      program_.steps.push_back({.kind = Step::Kind::kRound, .columns = columns, .to = place});
  }
  /// The step that makes dense rows of a value at entries.
  Step SpreadTo(NodeId id, const TileRef& to) const;

  TileProgram program_;
  std::vector<int> phases_;  ///< By node, of a body in phases.

 private:
  TileRef NewPattern() { return {Kind::kPattern, program_.patterns++, 0}; }

  std::vector<TileRef> places_;
  std::map<NodeId, TileRef> copies_, gathered_, spread_;
  std::vector<bool> by_entry_;  // As in BodyWithBackgrounds.
  std::vector<NodeId> backgrounds_;
  std::vector<bool> usually_zero_;
  std::map<NodeId, SavedValue> saved_;
};

}  // namespace heddle::ops
