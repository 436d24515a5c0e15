// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compiler/fuse/dag.h"
#include "compiler/fuse/memo.h"

namespace heddle::compiler::fusion {

/// What becomes of an entry when its node is done.
enum class Close : uint8_t { kOpenValid, kOpenInvalid, kClosedValid, kClosedInvalid };

/// Multi-aggregates are no template of this kind: they are formed after the search (multi_aggregate.h).
///
/// A template is four questions about nodes; whoever walks the graph asks them (Explore). `node` and `input`
/// are candidates (DagNode::op is set); `input` is among the first `arity` inputs of `node`.
struct Template {
  FusionTemplate kind;
  /// May an operator of this kind begin at this node?
  bool (*open)(const Dag& dag, NodeId node);
  /// May an open operator that ends at `input` take in its consumer `node`?
  bool (*fuse)(const Dag& dag, NodeId node, NodeId input);
  /// May an operator that covers `node` also take in `input`?
  bool (*merge)(const Dag& dag, NodeId node, NodeId input);
  /// May it grow further, and may it be executed as it is? Asked after fuse and merge.
  Close (*close)(const Dag& dag, NodeId node, const Entry& entry);
};

extern const Template kRowTemplate;    ///< row.cc
extern const Template kCellTemplate;   ///< cell.cc
extern const Template kOuterTemplate;  ///< outer_product.cc

/// A cell-wise operator with a matrix operand of its own shape, of more than one cell.
bool IsPlainCellWise(const Dag& dag, NodeId node);

}  // namespace heddle::compiler::fusion
