// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/programs/graph.h"

// The operators that are structurally recursive functions at some nodes (docs/recursion.md) and the
// derivatives of such (docs/gradient.md), as operators of a plan. Their bodies are found where they run, by
// the nodes that are met: they travel no more than machine code does.
namespace heddle::ops {

/// Inputs: roots, a column of doubles, then the function's parameters in their order without its node.
/// Result: a row of doubles for each root (floats widened, exactly): kLeft where only the interpreter can
/// tell what the script means, and then the results at the root, a number or the cells of a matrix,
/// row-major.
constexpr std::string_view kRecursive = "recursive";

/// The same of the "forward ..." of a derivative, which keeps what the way back reads. Inputs: groups of
/// roots (ops/recursion/structure/root_groups.h); a matrix of one cell, the number under which each rank keeps it; the
/// parameters. Result: as of "recursive".
constexpr std::string_view kRecursiveForward = "recursiveForward";

/// The way back. Inputs: the parameters, of which the results have their type; those groups that adjoints are
/// given for; the number; the adjoints that are given, a row for each root that has some, (group, place in
/// the group, cells of results). Results: what these add to the adjoints of parameters, matrices of their
/// sizes. What is not kept is computed again.
constexpr std::string_view kRecursiveBackward = "recursiveBackward";

/// Attributes, the same on every rank:
struct RecursiveAttributes {
  static constexpr const char* kFunction = "function";  ///< Key in Program::functions.
  static constexpr const char* kRoots = "roots";        ///< Of "recursiveForward": their number.
  static constexpr const char* kWidth = "width";        ///< Columns of a result that has rows for roots.
  static constexpr const char* kMayFail = "may.fail";   ///< TRUE: an error is a row left, too: the calls will
                                                        ///< be made again one by one, and meet it.
  /// Of "recursiveBackward", numbers from 0: results of the function whose adjoints are given, parameters
  /// (by the inputs) whose adjoints are wanted, at least one.
  static constexpr const char* kGiven = "given";
  static constexpr const char* kWanted = "wanted";
  /// TRUE where each rank takes its share of the roots or groups, as many as the others (scheduler/place.h).
  static constexpr const char* kEvenRows = "even.rows";
};
constexpr double kLeft = 1;
/// Inputs that are no parameters, before or behind these.
constexpr size_t kForwardInputs = 2, kBackwardInputs = 3;

/// The text of kGiven and kWanted, and back.
std::string TextOfNumbers(const std::vector<size_t>& numbers);
std::vector<size_t> NumbersIn(std::string_view text);

}  // namespace heddle::ops
