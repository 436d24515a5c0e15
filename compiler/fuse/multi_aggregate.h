// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "compiler/fuse/dag.h"

namespace heddle::compiler::fusion {

/// True for full aggregates of a matrix: what a multi-aggregate is made of.
bool IsFullAggregate(const Dag& dag, NodeId id);

/// What a full aggregate will read, as chosen so far.
struct ChosenAggregate {
  NodeId node = kNoNode;
  std::vector<NodeId> inputs;  ///< Matrices that its operator reads; ascending.
  bool by_nonzeros = false;    ///< It goes along the non-zeros of a CSR driver.
  int group = -1;              ///< Aggregates of one group (GroupAggregates) need no input in common.
};

/// Puts aggregates together, at most three in a group, greedily until nothing changes: the same shape below,
/// both along cells or both along non-zeros, at least one input in common, and no way from one group into
/// another and back. `wanted(a, b)` has the last word (random plans). Groups of one are left out.
std::vector<std::vector<NodeId>> MergeAggregates(const Dag& dag, std::vector<ChosenAggregate> aggregates,
                                                 const std::function<bool(NodeId a, NodeId b)>& wanted);

/// The same before anything is chosen, among the roots of a partition: in threes, by shape.
std::vector<std::vector<NodeId>> GroupAggregates(const Dag& dag, const std::vector<NodeId>& roots);

}  // namespace heddle::compiler::fusion
