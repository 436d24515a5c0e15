// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "compiler/optimize/infer.h"
#include "core/programs/graph.h"
#include "engine/variables/variables.h"

namespace heddle::engine {

/// Types, sizes, formats and known scalars of the nodes of a graph, inferred again and again in place, as
/// compiler::InferShapes infers a copy.
class InferredGraph {
 public:
  InferredGraph(Graph graph, ElementType element_type);

  /// Infers all nodes from the variables of `frame`. False where something cannot be, is missing, or a
  /// variable is a list.
  bool Infer(const VariableTable& frame) { return Infer(frame, /*knows_scalars=*/true); }
  /// True if every size and type is known.
  bool IsComplete() const;
  /// Whether types and sizes follow from those of the variables alone, whatever the values of scalars are.
  /// After Infer.
  bool IsFreeOfScalars(const VariableTable& frame) const;
  const Graph& graph() const { return graph_; }
  /// By node: the scalars that are known.
  const std::vector<std::optional<Scalar>>& scalars() const { return scalars_; }

 private:
  bool Infer(const VariableTable& frame, bool knows_scalars);

  Graph graph_;
  std::vector<std::optional<Scalar>> scalars_;
  compiler::NodeInference inference_;
};

}  // namespace heddle::engine
