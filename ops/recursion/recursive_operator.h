// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

// Structurally recursive functions at some roots (docs/recursion.md), and their derivatives
// (docs/gradient.md), as operators of a plan. A node names the function only: the bodies of its classes are
// made where the operator runs, for the nodes that are met there, as machine code is made for the CPU that is
// met.
namespace heddle::ops {

/// A function at its roots.
///
/// Inputs: the roots, a column of doubles; then the function's parameters in their order, without its node.
/// Result: a row of doubles for each root (floats are widened, exactly): first 0, or kInterpreted where only
/// the interpreter can tell what the script means; then the results at the root, each a number or the cells
/// of a matrix, row-major.
constexpr std::string_view kRecursive = "recursive";

/// The same of a forward function (DerivativeRole), which also saves what the backward sweep reads.
///
/// Inputs: groups of roots (ops/recursion/structure/root_groups.h); a matrix of one cell, the number under
/// which each rank saves the values; the parameters.
constexpr std::string_view kRecursiveForward = "recursiveForward";

/// The backward sweep: what the adjoints of results at some roots add to the adjoints of parameters. Values
/// that are not saved are computed again.
///
/// Inputs: the parameters, first those whose adjoints are wanted; the groups of roots that adjoints are given
/// for; the number of the saved values; the given adjoints, a row for each root that has some: its group, its
/// place in the group, and the cells of the adjoints of all results that can vary.
/// Results: a matrix of the size of each parameter whose adjoint is wanted.
constexpr std::string_view kRecursiveBackward = "recursiveBackward";

/// Attributes, the same on every rank.
struct RecursiveAttributes {
  static constexpr const char* kFunction = "function";  ///< Key in Program::functions.
  static constexpr const char* kRoots = "roots";        ///< Of kRecursiveForward: how many roots there are.
  static constexpr const char* kWidth = "width";        ///< Columns of a result with a row for each root.
  /// TRUE where an error gives rows of kInterpreted, too: the calls are then made one by one, and the one
  /// that fails reports the error at its place.
  static constexpr const char* kMayFail = "may.fail";
  /// Of kRecursiveBackward: how many adjoints of parameters are wanted.
  static constexpr const char* kWanted = "wanted";
  /// TRUE: each rank takes its share of the roots or groups, as many as the others (scheduler/place.h).
  static constexpr const char* kEvenRows = "even.rows";
};
/// The first cell of a root's row when the root is for the interpreter.
constexpr double kInterpreted = 1;
/// How many inputs are no parameters: those before the parameters, and those behind them.
constexpr size_t kForwardInputs = 2, kBackwardInputs = 3;

}  // namespace heddle::ops
