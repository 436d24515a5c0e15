// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "compiler/fuse/dag.h"
#include "core/programs/fused_operator.h"

namespace heddle::compiler::fusion {

/// A fused operator and the nodes that it reads, by input.
struct BuiltOperator {
  FusedOperator fused;
  std::vector<NodeId> inputs;
};

/// The operator that computes `roots` from whatever `covered` (ascending, roots included) reads from outside.
/// Literals are copied into the body, bounds of column ranges become literals, and a value that is needed
/// both row by row and as a whole becomes two inputs. nullopt when none of its inputs has rows to walk.
std::optional<BuiltOperator> BuildOperator(const Dag& dag, FusionTemplate kind,
                                           const std::vector<NodeId>& roots,
                                           const std::vector<NodeId>& covered);

}  // namespace heddle::compiler::fusion
