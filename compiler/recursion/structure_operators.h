// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "core/programs/graph.h"
#include "ops/recursion/structure/structure_program.h"

namespace heddle::compiler {

/// How a structure program computes an operator on numbers.
struct StructureOperator {
  ops::StructureProgram::Code code = ops::StructureProgram::Code::kEnd;
  int32_t index = 0;   ///< Of kBinary and kUnary: the cell-wise operator.
  bool swaps = false;  ///< The operands change places: a > b is b < a.
};

/// nullopt where structure programs do not compute the operator: its result is then no number of the
/// structure.
std::optional<StructureOperator> StructureOperatorOf(const Node& node);

}  // namespace heddle::compiler
