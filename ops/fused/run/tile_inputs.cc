// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/run/tile_inputs.h"

#include <algorithm>

#include "ops/cells/storage.h"
#include "ops/elementwise/single_precision.h"

namespace heddle::ops {
namespace {

// True for floats that a product reads, but for rows.
bool MultipliesSingles(const TileProgram& program, const Step& step, int input) {
  return MultipliesSingles(program, step) && (step.right == input || step.index == input);
}

// True for floats that products or regions read, or a step widens tile by tile.
bool ReadsSingles(const TileProgram& program, int input) {
  if (!program.single) return false;
  const TileRef rows{TileRef::Kind::kInput, input, 0};
  if (std::any_of(program.roots.begin(), program.roots.end(), [&](const TileRoot& root) {
        return root.kind == TileRoot::Kind::kMoments && root.input == input;
      }))
    return true;
  return std::any_of(program.steps.begin(), program.steps.end(), [&](const Step& step) {
    return (step.kind == Step::Kind::kWiden && step.index == input) || step.from == rows ||
           step.from_right == rows || MultipliesSingles(program, step, input) ||
           std::any_of(step.operands.begin(), step.operands.end(), [&](const RegionOperand& operand) {
             return operand.from == RegionOperand::From::kTile && operand.tile == rows;
           });
  });
}

// True for what some step reads as doubles. Dense rows of floats are no such thing, but along the driver's
// entries: a step widens them.
bool ReadsDoubles(const TileProgram& program, int input) {
  if (program.by_pattern && program.fused.driver == input) return true;
  const auto is_whole = [&](const RegionOperand& operand) {
    return operand.from == RegionOperand::From::kWhole && operand.index == input;
  };
  return std::any_of(program.repeated.begin(), program.repeated.end(),
                     [&](const TileProgram::Repeated& repeated) { return repeated.input == input; }) ||
         std::any_of(program.steps.begin(), program.steps.end(), [&](const Step& step) {
           switch (step.kind) {
             case Step::Kind::kRegion:
               return std::any_of(step.operands.begin(), step.operands.end(), is_whole);
             case Step::Kind::kIntersect:
               return std::find(step.inputs.begin(), step.inputs.end(), input) != step.inputs.end();
             case Step::Kind::kMultiply:
               return !MultipliesSingles(program, step) && (step.index == input || step.right == input);
             case Step::Kind::kRoot: return step.right == input;
             case Step::Kind::kDensify:
             case Step::Kind::kFoldRows:
             case Step::Kind::kGatherCells:
             case Step::Kind::kGatherColumn:
             case Step::Kind::kGatherRow:
             case Step::Kind::kSample: return step.index == input || step.right == input;
             case Step::Kind::kWiden:
             case Step::Kind::kRound:
             case Step::Kind::kNarrow:
             case Step::Kind::kExpand:
             case Step::Kind::kSpread:
             case Step::Kind::kCopy: return false;  // Of tiles.
           }
           return false;
         });
}

// Longer rows are cut by columns, or their tiles leave the caches.
constexpr int64_t kMostDecodedColumns = 4096;

}  // namespace

bool DecodesRows(const TileProgram& program, size_t input, const Matrix& matrix) {
  if (!matrix.IsCompressed() || program.single || program.by_pattern || program.cut_columns > 0 ||
      program.roles.inputs[input] != BodyRole::kRows || matrix.columns() > kMostDecodedColumns ||
      program.fused.body[program.roles.variables[input]].info.format != Format::kDense)
    return false;
  // Moments read the rows of a leaf twice.
  return std::none_of(program.roots.begin(), program.roots.end(), [&](const TileRoot& root) {
    return root.kind == TileRoot::Kind::kMoments && root.input == static_cast<int>(input);
  });
}

Status MakeTileInputs(const TileProgram& program, const KernelCall& call, TileInputs* inputs) {
  const size_t count = program.roles.inputs.size();
  inputs->doubles.assign(count, Matrix());
  inputs->singles.assign(count, Matrix());
  inputs->decoders.clear();
  inputs->decoders.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const BodyRole role = program.roles.inputs[i];
    if (role != BodyRole::kRows && role != BodyRole::kWhole) continue;
    const Format format = program.fused.body[program.roles.variables[i]].info.format;
    const bool dense = role == BodyRole::kWhole || format == Format::kDense;
    const Matrix& given = call.inputs[i]->matrix();
    if (DecodesRows(program, i, given)) {
      inputs->doubles[i] = given;
      inputs->decoders[i] = std::make_unique<TileDecoder<double>>(given);
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(inputs->doubles[i], dense ? AsDense(given) : AsSparse(given));
    const int input = static_cast<int>(i);
    const bool reads_singles = ReadsSingles(program, input);
    if (reads_singles) inputs->singles[i] = inputs->doubles[i];
    if (reads_singles && !ReadsDoubles(program, input)) continue;
    HEDDLE_ASSIGN_OR_RETURN(inputs->doubles[i], Widen(inputs->doubles[i]));
  }
  return OkStatus();
}

}  // namespace heddle::ops
