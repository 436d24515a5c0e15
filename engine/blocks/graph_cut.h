// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "compiler/optimize/infer.h"
#include "core/programs/graph.h"

namespace heddle::engine {

/// A graph in two parts: what can run now, and what waits for sizes that only running the first part tells,
/// or for files that it writes.
struct Cut {
  Graph first;  ///< Empty when nothing can run.
  Graph rest;   ///< Empty when `first` is everything.
  std::vector<std::string>
      temporaries;  ///< Variables "%cut<part>_<node>" that `first` assigns and `rest` reads.
};

/// Cuts an inferred graph that has unknown sizes, a read that waits (inferred.waiting), or a node that cannot
/// be (inferred.failed).
///
/// A node goes first when all its inputs go first with known sizes, everything it must come after goes first,
/// and its own size is known or depends on cells alone (removeEmpty), which the run tells. Assignments of
/// variables wait for the last part, so that every part reads the variables as the block found them. When a
/// node cannot be, only what the effects before it need goes first: the script is seen to act up to the
/// fault, and no further. So it is with a read that waits: what else the block computes goes with it.
Cut CutGraph(const compiler::InferOutcome& inferred, int part);

}  // namespace heddle::engine
