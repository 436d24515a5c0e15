// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/values/matrix.h"

namespace heddle::ops {

/// What a structurally recursive function does with its node before anything is computed: which way it goes,
/// which calls of itself it makes, and which numbers of the structure (rows to look up) its operators read. A
/// small program on double registers, compiled from the function (compiler/recursion), run once a node. Plain
/// data.
struct StructureProgram {
  enum class Code : uint8_t {
    kConstant,  ///< r[target] = constant
    kCopy,      ///< r[target] = r[a]
    kCell,      ///< r[target] = matrices[index] at row r[a], column r[b]
    kUniform,   ///< r[target] = uniforms[index]
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kEqual,
    kNotEqual,
    kLess,
    kLessEqual,
    kAnd,
    kOr,
    kNot,
    kBinary,    ///< r[target] = the binary operator `index` of r[a] and r[b]; of integers, if is_whole
    kUnary,     ///< r[target] = the unary operator `index` of r[a]
    kTruncate,  ///< as.integer
    kWhole,     ///< r[a], which is declared an integer: anything else is for the interpreter.
    kBoolean,   ///< as.logical
    kDouble,    ///< as.double: nothing
    kRounds,    ///< r[target] = rounds of a loop from r[a] to r[b] by r[index]
    kStep,      ///< r[target] = 1 if r[a] <= r[b], else -1: the step of a:b
    kJump,      ///< to step `index`
    kBranch,    ///< A decision: to step `index` if r[a] is 0, else to the next.
    kCall,      ///< Of the node r[a].
    kGive,      ///< r[a] is the next number that operators read.
    kNeed,      ///< r[a] has a value: its variable was assigned on the way of the node.
    kEnd,
  };
  struct Step {
    Code code = Code::kEnd;
    bool is_whole = false;  ///< The result is an integer of the language: past 2^53 nobody can tell.
    int32_t target = 0, a = 0, b = 0, index = 0;
    double constant = 0;
  };
  /// A number that is the same for all nodes: a scalar parameter, or a size of a matrix.
  struct Uniform {
    std::string parameter;
    std::string size;  ///< "nrow", "ncol" or "length"; empty: the parameter itself.
  };
  std::vector<Step> steps;
  int32_t registers = 1;              ///< r[0] is the node.
  std::vector<int32_t> unset;         ///< Registers without a value (NaN) when a node begins.
  std::vector<std::string> matrices;  ///< Parameters whose cells it reads.
  std::vector<Uniform> uniforms;
};

/// The nodes of a structure that are reached from the roots, and what they do. Nodes that go the same way
/// through the function are of one class: they run the same operators.
struct VisitedStructure {
  struct Class {
    std::vector<bool> path;  ///< The decisions on its way.
    int32_t calls = 0;       ///< Of each of its nodes,
    int32_t given = 0;       ///< numbers given to its operators.
  };
  std::vector<Class> classes;
  /// Nodes by the number of their visit: depth first, root after root, a node before those that it calls, and
  /// these in the order of the calls.
  std::vector<int32_t> nodes;     ///< What the script calls them.
  std::vector<int32_t> class_of;  ///< Of each,
  std::vector<int32_t> heights;   ///< 0: no calls; else one more than the highest child.
  std::vector<int32_t>
      subtrees;  ///< Nodes that were visited from the node on, with it, until all its calls were.
  std::vector<int32_t>
      children;  ///< Numbers of visits: calls of the first node in their order, of the next, ...
  std::vector<double> numbers;  ///< Given to operators, in the same order.
  std::vector<int32_t> roots;   ///< Visits of the roots.
  /// No call met a node that had been visited before: the visits of a subtree are those from its node on.
  bool is_tree = true;
};

/// Runs `program` for the roots and for all nodes that they reach; no recursion, each node once.
/// kFailedPrecondition where a node reads past the structure, and with nodes where calls go in a circle;
/// `function` is named in that error. nullopt where only the interpreter can tell what the script means
/// (numbers that are no nodes, NaN as a condition, variables without a value, more decisions of a node than
/// `most_decisions`): `why` tells which.
Result<std::optional<VisitedStructure>> VisitStructure(const StructureProgram& program,
                                                       std::span<const Matrix> matrices,
                                                       std::span<const double> uniforms,
                                                       std::span<const int64_t> roots, int32_t most_decisions,
                                                       std::string_view function, std::string* why = nullptr);

/// The nodes that are called by each of `nodes`, in order, without going on to them. nullopt as above, and
/// where a node reads past the structure.
std::optional<std::vector<int64_t>> CallsOf(const StructureProgram& program, std::span<const Matrix> matrices,
                                            std::span<const double> uniforms, std::span<const int64_t> nodes);

}  // namespace heddle::ops
