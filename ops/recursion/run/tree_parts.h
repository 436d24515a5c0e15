// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ops/recursion/structure/linearize.h"

namespace heddle::ops {

/// How the nodes of a structure are shared out over threads: parts of whole subtrees, each of which one
/// thread computes from the leaves up and waits for nobody, and the rest, the nodes above them, batch by
/// batch with the threads inside operators. What a node's result is does not depend on it.
///
///           o            rest: o, o: two batches with all threads
///         /   \          parts: {x}, {x, x}: a thread each
///       o       x
///      / \  (cut)
///     x   x
///
/// Of a forest of many roots the parts are trees, and there is no rest. Of few roots they lie below a cut,
/// where that is expected to take less time than going by level: narrow levels read the same matrices again
/// for few rows each.
struct TreeParts {
  using Batches = std::vector<Linearized::Batch>;  // Ranges of places, of batches of the structure.
  std::vector<Batches> parts;                      ///< Of each part, children first. Two or more, or none.
  Batches rest;  ///< Where there are parts: what follows them, children first.

  /// Where there are no parts the rest is everything.
  std::span<const Linearized::Batch> RestOf(const Linearized& structure) const {
    return parts.empty() ? std::span(structure.batches) : std::span(rest);
  }
};

/// Microseconds that so many nodes of a class are expected to take as one batch on so many threads.
using BatchTime = std::function<double(int32_t node_class, int64_t rows, int threads)>;

/// The form that is expected to take less time. Nodes that share children are in the same part.
/// O(nodes + batches * threads).
TreeParts ChooseParts(const Linearized& structure, int threads, const BatchTime& time);

/// run(part) for each part, side by side: each on one thread, whose loops are serial. The error of the first
/// part that fails; the others are run to their end.
Status EachPart(const TreeParts& parts, const std::function<Status(size_t part)>& run);

/// "levels", "trees over 2 threads" or "subtrees below a cut over 2 threads".
std::string ToText(const TreeParts& parts);

}  // namespace heddle::ops
