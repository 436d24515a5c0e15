// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "compiler/recursion/class_body.h"
#include "core/programs/graph.h"
#include "ops/recursion/adjoint/recursive_adjoint.h"

namespace heddle::compiler {

/// Takes the adjoints that a node's body gives apart: what goes to the children as it is, and the adjoint of
/// each parameter, which all nodes add to, as terms that are summed over the nodes in their own ways
/// (RecursiveAdjoint::Term): t(a) %*% g of rows is one product of all nodes' rows.
class AdjointTerms {
 public:
  /// `graph`: its sizes are known; it assigns adjoints to the variables of AdjointName. `node`: what is
  /// differentiated, whose inputs the graph reads. Both references outlive the object.
  AdjointTerms(Graph graph, const ClassGraph& node, const std::set<std::string>& parameters);

  struct Outputs {
    Graph graph;
    std::vector<std::string> variables;  ///< That the graph assigns: output i is variables[i].
  };
  /// Fills in `children` and `terms`, and gives `outputs` its size.
  Outputs Take(ops::RecursiveAdjoint* made);

 private:
  using Term = ops::RecursiveAdjoint::Term;
  int32_t Output(NodeId id);
  void Split(NodeId id, const Term& rectangle);
  bool SplitAssigned(NodeId id, const Term& rectangle);
  bool IsZeros(NodeId id) const;

  Graph graph_;
  const ClassGraph& class_node_;
  const std::set<std::string>& parameters_;
  std::map<NodeId, int32_t> outputs_;
  ops::RecursiveAdjoint* made_ = nullptr;
};

}  // namespace heddle::compiler
