// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/values/matrix.h"
#include "ops/recursion/structure/structure_program.h"

namespace heddle::ops {

/// A structure program prepared for its matrices and numbers, so that it runs faster and does the same.
/// Registers have the values that all nodes share before the first node runs; steps whose results nothing
/// reads are dropped; common groups of steps, such as "read a cell and call that node", are one step.
struct StructureSteps {
  struct Step {
    StructureProgram::Code code = StructureProgram::Code::kEnd;
    bool is_whole = false;
    bool truncates = false;    ///< The cell, as as.integer does.
    bool is_float = false;     ///< The cell.
    bool is_outside = false;   ///< A decision: for what is not from `low` to `high`, NaN as well.
    bool refuses_nan = false;  ///< A decision: of a number, not of a comparison.
    int32_t target = 0, a = 0, b = 0, index = 0;
    int32_t next = 0;    ///< kNextRound
    int32_t source = 0;  ///< The first of its steps in the program.
    int32_t matrix = 0;  ///< Of the cell; its row is r[a], its column r[b].
    double constant = 0;
    double low = 0, high = 0;
    bool is_of_node = false;  ///< The cell: its row is the node.
    /// Where the column is the same for all nodes: its first cell.
    const char* column = nullptr;
    int64_t rows = 0, row_bytes = 0;
  };
  std::vector<Step> steps;
  std::vector<double> registers;
};

/// `matrices` are dense, and as `program` names them.
StructureSteps PrepareSteps(const StructureProgram& program, std::span<const Matrix> matrices,
                            std::span<const double> uniforms);

}  // namespace heddle::ops
