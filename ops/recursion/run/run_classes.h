// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "ops/recursion/run/run_body.h"
#include "ops/recursion/run/tree_parts.h"

namespace heddle::ops {

/// A class of nodes in an evaluation. Classes of one evaluation that have products with the results of
/// children store them in the same `results`.
struct ClassRun {
  std::unique_ptr<BodyRun> run;  ///< BodyRun::Begin was called for all classes.
  NodeResults* results = nullptr;
};

/// The parts in which these classes are expected to be computed fastest on the threads of the calling arena.
TreeParts ChooseParts(const Linearized& structure, const std::vector<ClassRun>& classes);

/// Computes the results of all nodes, children first. False where an integer has come up that a double cannot
/// hold: there are no results.
Result<bool> RunClasses(const Linearized& structure, const std::vector<ClassRun>& classes,
                        const TreeParts& parts);

}  // namespace heddle::ops
