// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ops/recursion/structure/linearize.h"

namespace heddle::ops {

/// How the nodes of a structure are shared out over threads. A part is some whole subtrees, which one thread
/// computes from the leaves up without waiting for another. The rest, the nodes above them, is computed batch
/// by batch, with the threads inside operators. No result depends on the choice.
///
///           o            rest: o, o: two batches with all threads
///         /   \          parts: {x}, {x, x}: a thread each
///       o       x
///      / \  (cut)
///     x   x
///
/// The parts of a forest of many roots are its trees, and there is no rest. Few trees are cut, where this is
/// expected to take less time than going by level: a narrow level reads whole matrices for few rows.
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

/// The parts that are expected to take the least time. Nodes that share children are in one part.
/// O(nodes + batches * threads).
TreeParts ChooseParts(const Linearized& structure, int threads, const BatchTime& time);

/// run(part) for each part, side by side: each on one thread, whose loops are serial. The error of the first
/// part that fails; the others are run to their end.
Status EachPart(const TreeParts& parts, const std::function<Status(size_t part)>& run);

/// "levels", "trees over 2 threads" or "subtrees below a cut over 2 threads".
std::string ToText(const TreeParts& parts);

}  // namespace heddle::ops
