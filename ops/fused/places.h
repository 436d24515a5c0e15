// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "ops/fused/body_view.h"
#include "ops/fused/long_rows.h"

namespace heddle::ops {

/// Where the values of a body are while a tile is computed. A place that something asks for first gets the
/// step that fills it.
class Places : public BodyView {
 protected:
  using Kind = TileRef::Kind;
  Places(FusedOperator fused, const Processor& processor);

  TileRef& PlaceOf(NodeId id) { return places_[Index(id)]; }
  /// A value at the entries of a CSR driver.
  bool IsPattern(NodeId id) const { return program_.by_pattern && HasDriversShape(id); }

  /// A body in phases takes the place of the one that was given.
  Status Take(PhasedBody body);
  /// Inputs, aggregates of long rows, and the patterns of the walk along the entries of a driver.
  void PlaceInputs();
  /// Values of an operand at the driver's entries.
  TileRef PatternPlace(NodeId input, Pattern pattern);
  int NewBuffer(int64_t columns) {
    program_.buffers.push_back(columns);
    return static_cast<int>(program_.buffers.size()) - 1;
  }
  /// Of what a step makes. Regions write floats of a result themselves; what other steps make is narrowed at
  /// the end.
  TileRef NewPlace(NodeId id, bool of_region = false);
  int64_t StrideOf(const TileRef& ref) const;
  /// Where the dense cells of a value are, as doubles; CSR inputs are made dense, and floats widened, when
  /// first asked for.
  TileRef DensePlace(NodeId id);
  /// The same without gaps between rows.
  TileRef ContiguousPlace(NodeId id);

  TileProgram program_;
  std::vector<int> phases_;  ///< By node, of a body in phases.

 private:
  TileRef NewPattern() { return {Kind::kPattern, program_.patterns++, 0}; }

  std::vector<TileRef> places_;
  std::map<NodeId, TileRef> copies_, gathered_;
  std::map<NodeId, KeptValue> keeps_;
};

}  // namespace heddle::ops
