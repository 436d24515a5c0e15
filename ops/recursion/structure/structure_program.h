// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/source_position.h"

namespace heddle::ops {

/// What a structurally recursive function does with its node before anything is computed: which way it goes,
/// which calls of itself it makes, and which numbers of the structure (rows to look up) its operators read. A
/// small program on double registers, compiled from the function (compiler/recursion), run once a node
/// (visit_structure.h). Plain data.
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
    // Several of the above in one, made by PrepareSteps (structure_steps.h).
    kCellOf,      ///< r[target] = the cell
    kCallCell,    ///< Of the node in the cell.
    kGiveCell,    ///< The cell is the next number that operators read.
    kDecide,      ///< A decision: to step `index` unless r[a] is between two numbers, else to the next.
    kDecideCell,  ///< The same of the cell.
    kNextRound,   ///< Of r[b] rounds one less is left: to step `next` with r[target] + r[a], or to `index`.
  };
  struct Step {
    Code code = Code::kEnd;
    bool is_whole = false;  ///< The result is an integer of the language: past 2^53 nobody can tell.
    int32_t target = 0, a = 0, b = 0, index = 0;
    double constant = 0;
    bool operator==(const Step&) const = default;
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
  std::map<int32_t, SourcePosition> positions;  ///< Of kCell, by the number of the step.

  /// Whether both do the same with the same cells and numbers, whatever these are called.
  bool IsAlike(const StructureProgram& other) const {
    return steps == other.steps && registers == other.registers && unset == other.unset;
  }
};

}  // namespace heddle::ops
