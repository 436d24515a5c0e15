// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "compiler/optimize/names.h"
#include "core/programs/program.h"

namespace heddle::compiler {

/// Visits blocks backwards. `live` holds the variables that may be read after the blocks; on return those
/// that may be read when they are entered. A loop's variables are live around its back edge; a function's
/// results are live at its end.
///
/// With `mark`, fills in Block::dead_after: what is live before or made by a block, and not live after it. A
/// variable may be named at several blocks (in a branch and after the `if`): freeing what is not there does
/// nothing. Without, removes the assignments that nothing reads and the results of calls that nothing reads.
/// `sweep`, when given, then takes from each straight-line graph what has no reader left, so that what only
/// that read goes in the same visit. Returns true when it changed a graph.
bool VisitLiveness(std::vector<Block>* blocks, SharedNames* live, bool mark, Graph (*sweep)(Graph) = nullptr);

}  // namespace heddle::compiler
