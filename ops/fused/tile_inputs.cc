// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/tile_inputs.h"

#include <algorithm>

#include "ops/cells/storage.h"
#include "ops/elementwise/single_precision.h"

namespace heddle::ops {
namespace {

// True for rows of floats that regions read, or a step widens tile by tile.
bool ReadsSingles(const TileProgram& program, int input) {
  if (!program.single) return false;
  const TileRef rows{TileRef::Kind::kInput, input, 0};
  return std::any_of(program.steps.begin(), program.steps.end(), [&](const Step& step) {
    return (step.kind == Step::Kind::kWiden && step.index == input) ||
           std::any_of(step.operands.begin(), step.operands.end(), [&](const RegionOperand& operand) {
             return operand.from == RegionOperand::From::kTile && operand.tile == rows;
           });
  });
}

// True for rows that a step along the driver's entries reads as doubles.
bool IsSampled(const TileProgram& program, int input) {
  return std::any_of(program.steps.begin(), program.steps.end(), [&](const Step& step) {
    return (step.kind == Step::Kind::kSample || step.kind == Step::Kind::kGatherCells) && step.index == input;
  });
}

}  // namespace

Result<TileInputs> MakeTileInputs(const TileProgram& program, const KernelCall& call) {
  const size_t count = program.roles.inputs.size();
  TileInputs inputs{std::vector<Matrix>(count), std::vector<Matrix>(count)};
  for (size_t i = 0; i < count; ++i) {
    const BodyRole role = program.roles.inputs[i];
    if (role != BodyRole::kRows && role != BodyRole::kWhole) continue;
    const Format format = program.fused.body[program.roles.variables[i]].info.format;
    const bool dense = role == BodyRole::kWhole || format == Format::kDense;
    const Matrix& given = call.inputs[i]->matrix();
    HEDDLE_ASSIGN_OR_RETURN(inputs.doubles[i], dense ? AsDense(given) : AsSparse(given));
    const int input = static_cast<int>(i);
    const bool reads_singles = ReadsSingles(program, input);
    if (reads_singles) inputs.singles[i] = inputs.doubles[i];
    if (reads_singles && !IsSampled(program, input)) continue;
    HEDDLE_ASSIGN_OR_RETURN(inputs.doubles[i], Widen(inputs.doubles[i]));
  }
  return inputs;
}

}  // namespace heddle::ops
