// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "core/programs/graph.h"
#include "ops/recursion/adjoint/recursive_adjoint.h"

namespace heddle::compiler {

/// Takes the adjoints that a node's body gives apart: what goes to the children as it is, and the adjoint of
/// each parameter, which all nodes add to, as terms that are summed over the nodes in their own ways
/// (RecursiveAdjoint::Term): t(a) %*% g of rows is one product of all nodes' rows.
class AdjointTerms {
 public:
  /// `graph`: its sizes are known; adjoints are assigned to variables (AdjointName).
  AdjointTerms(Graph graph, const std::set<std::string>& parameters);
  /// Fills in `children`, `terms` and, by their number, `outputs`. The graph assigns these.
  Graph Take(ops::RecursiveAdjoint* made);

  static size_t OutputNamed(std::string_view name);

 private:
  using Term = ops::RecursiveAdjoint::Term;
  int32_t Output(NodeId id);
  void Split(NodeId id, const Term& rectangle);
  bool SplitAssigned(NodeId id, const Term& rectangle);
  bool IsZeros(NodeId id) const;

  Graph graph_;
  const std::set<std::string>& parameters_;
  std::map<NodeId, int32_t> outputs_;
  ops::RecursiveAdjoint* made_ = nullptr;
};

}  // namespace heddle::compiler
