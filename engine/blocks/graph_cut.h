// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "compiler/optimize/infer.h"
#include "core/programs/graph.h"

namespace heddle::engine {

/// A graph in two parts. The second waits for the first: for sizes that are known when it has run, or for
/// files that it writes.
struct Cut {
  Graph first;  ///< Empty when nothing can run.
  Graph rest;   ///< Empty when `first` is everything.
  std::vector<std::string>
      temporaries;  ///< Variables "%cut<part>_<node>" that `first` assigns and `rest` reads.
};

/// Cuts an inferred graph that has unknown sizes, a read that waits for a write (inferred.waiting), or a node
/// that fails whatever the cells are (inferred.failed).
///
/// A node is in the first part when all its inputs are, with known sizes, when everything that it must come
/// after is, and when its own size is known or depends on cells alone (removeEmpty), so that a run finds it.
/// Assignments of variables are in the last part, so that every part reads the variables as the block found
/// them. Where a node fails, the first part is only what the effects before it need: a user sees the script
/// act up to the fault and no further. The same holds for a read that waits; the rest of the block runs with
/// it.
Cut CutGraph(const compiler::InferOutcome& inferred, int part);

}  // namespace heddle::engine
