// SPDX-License-Identifier: Apache-2.0
#include "ops/device/print/print_tiles.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ops/device/print/tile_printer.h"

namespace heddle::ops {
namespace {

int64_t ColumnsOf(const TileProgram& program, NodeId node) {
  return program.fused.body[node].info.shape.columns;
}

// The columns of all rows that the program goes through, where it goes from cell to cell and all rows have as
// many: then rows without gaps are one column, whatever their length. nullopt: its order of cells, or what it
// reads, depends on columns.
std::optional<int64_t> ColumnsOfCells(const TileProgram& program) {
  if (program.by_pattern || !program.roots.empty() || program.steps.empty() || program.chunks > 1 ||
      program.cut_columns > 0 || program.phases > 1)
    return std::nullopt;
  const int64_t columns = program.steps[0].columns;
  const auto has_all = [&](const TileRef& ref) {
    switch (ref.kind) {
      case TileRef::Kind::kNone: return true;
      case TileRef::Kind::kInput:
        return ref.column == 0 &&
               ColumnsOf(program, program.roles.variables[static_cast<size_t>(ref.index)]) == columns;
      case TileRef::Kind::kBuffer:
        return ref.column == 0 && program.buffers[static_cast<size_t>(ref.index)] == columns;
      case TileRef::Kind::kResult:
        return ref.column == 0 &&
               ColumnsOf(program, program.fused.roots[static_cast<size_t>(ref.index)]) == columns;
      default: return false;
    }
  };
  const auto is_cellwise = [&](const Step& step) {
    if (step.columns != columns || step.by_entries || !has_all(step.from) || !has_all(step.to)) return false;
    if (step.kind == Step::Kind::kWiden) return has_all({TileRef::Kind::kInput, step.index, 0});
    if (step.kind == Step::Kind::kRound || step.kind == Step::Kind::kNarrow || step.kind == Step::Kind::kCopy)
      return true;
    if (step.kind != Step::Kind::kRegion) return false;
    const Region& region = program.regions[static_cast<size_t>(step.index)];
    for (size_t o = 0; o < step.outputs.size(); ++o)
      if (step.output_roots[o] >= 0 || region.outputs[o].sink == Sink::kFoldRows || !has_all(step.outputs[o]))
        return false;
    return std::all_of(region.nodes.begin(), region.nodes.end(), [&](const RegionNode& node) {
      if (node.op != RegionOp::kInput) return true;
      const RegionOperand& operand = step.operands[static_cast<size_t>(node.input)];
      if (operand.from == RegionOperand::From::kScalar) return true;
      if (operand.from == RegionOperand::From::kWhole) return node.access == Access::kScalar;
      const bool is_cell = node.access != Access::kPerRow && node.access != Access::kPerColumn &&
                           node.access != Access::kScalar;
      return operand.from == RegionOperand::From::kTile && is_cell && has_all(operand.tile);
    });
  };
  return std::all_of(program.steps.begin(), program.steps.end(), is_cellwise) ? std::optional(columns)
                                                                               : std::nullopt;
}

// The same program over rows of one cell.
TileProgram InOneColumn(TileProgram program, int64_t columns) {
  for (Node& node : program.fused.body.nodes)
    if (node.info.IsMatrix() && node.info.shape.columns == columns) node.info.shape.columns = 1;
  for (Step& step : program.steps) step.columns = 1;
  for (int64_t& of_buffer : program.buffers) of_buffer = 1;
  return program;
}

}  // namespace

Result<PrintedTiles> PrintTiles(const TileProgram& program, const TileLimits& limits) {
  const std::optional<int64_t> columns = ColumnsOfCells(program);
  if (!columns) return TilePrinter(program, limits, /*of_cells=*/false).Print();
  HEDDLE_ASSIGN_OR_RETURN(PrintedTiles printed,
                          TilePrinter(InOneColumn(program, *columns), limits, /*of_cells=*/true).Print());
  printed.rows_of_row = *columns;
  return printed;
}

}  // namespace heddle::ops
