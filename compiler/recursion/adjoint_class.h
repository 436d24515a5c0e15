// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>

#include "compiler/recursion/class_body.h"
#include "ops/recursion/adjoint/recursive_adjoint.h"

namespace heddle::compiler {

struct ClassAdjointOptions {
  std::set<std::string> parameters;  ///< Whose adjoints are wanted.
  int32_t calls = 0;                 ///< Of one node of the class.
  /// Whether the forward body saves what the backward body reads; else the backward body computes it
  /// recomputed from the results of the nodes.
  bool saves = true;
};

/// The derivative of the body of one node (JoinBlocks), as operators on all nodes of its class. nullopt, with
/// `why`, where there is none: an operator without a derivative, sizes that only the run tells.
std::optional<ops::RecursiveAdjoint> DifferentiateClass(const ClassGraph& graph, const ClassContext& context,
                                                        const ClassAdjointOptions& options, std::string* why);

}  // namespace heddle::compiler
