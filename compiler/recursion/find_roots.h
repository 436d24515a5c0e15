// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/programs/program.h"
#include "ops/recursion/structure/structure_program.h"

namespace heddle::compiler {

/// The calls of a structural recursion that a loop makes, one a round, for nodes that follow from the counter
/// and from what the loop does not change: they can be made as one.
struct LoopRoots {
  std::string function;
  const Block* call = nullptr;      ///< The block that makes them.
  ops::StructureProgram structure;  ///< Of the counter: calls the root of its round. Its parameters are
                                    ///< variables that the loop finds.
};

/// Looks at the first such call in the body of a for or parfor. `node_of` tells the node parameter of a
/// function, "" where calls of it are no batches.
std::optional<LoopRoots> FindRoots(const Block& loop,
                                   const std::function<std::string(const std::string& function)>& node_of);

}  // namespace heddle::compiler
