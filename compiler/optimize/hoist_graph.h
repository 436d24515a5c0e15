// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "compiler/optimize/names.h"
#include "core/programs/graph.h"

namespace heddle::compiler {

/// What is known where one graph of a loop is looked at.
struct HoistContext {
  const Names& changing;       ///< Variables that the loop assigns.
  const SharedNames& defined;  ///< Variables that have a value before the loop for certain.
  bool certain = true;         ///< Nothing that the loop did before can print or end the script.
};

/// Moves what is the same in every round and worth it from `graph`, a graph of a loop, to the end of
/// `hoisted`; it is assigned to variables whose names start with `prefix`. Behind an effect `context.certain`
/// becomes false, and only what cannot fail moves.
void HoistFromGraph(Graph* graph, HoistContext* context, const std::string& prefix, Graph* hoisted);

/// True if the predicate of a while loop may be computed once more: without effect, at next to no cost.
bool CanRepeat(const Graph& predicate);

}  // namespace heddle::compiler
