// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "core/programs/graph.h"

// The operator "recursive": a structurally recursive function at some nodes, as one operator of a plan
// (docs/recursion.md). Its bodies are found where it runs, by the nodes that are met: they travel no more
// than machine code does.
namespace heddle::ops {

constexpr std::string_view kRecursive = "recursive";

/// Inputs: roots, a column of doubles, then the function's parameters in their order without its node.
/// Result: a row of doubles for each root (floats widened, exactly): kLeft where only the interpreter can
/// tell what the script means, and then the results at the root, a number or the cells of a matrix,
/// row-major. Attributes, the same on every rank:
struct RecursiveAttributes {
  static constexpr const char* kFunction = "function";  ///< Key in Program::functions.
  static constexpr const char* kWidth = "width";        ///< Columns of the result.
  static constexpr const char* kMayFail = "may.fail";   ///< TRUE: an error is a row left, too: the calls will
                                                        ///< be made again one by one, and meet it.
  /// TRUE where each rank takes its share of the roots, as many as the others (scheduler/place.h).
  static constexpr const char* kEvenRows = "even.rows";
};
constexpr double kLeft = 1;

}  // namespace heddle::ops
