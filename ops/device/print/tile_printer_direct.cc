// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/values/panels.h"
#include "ops/device/print/prelude.h"
#include "ops/device/print/tile_printer.h"

// Programs that do nothing but add cells of their inputs up, for devices with many work-items: no tiles, no
// buffers, no barriers. A work-item has a chain of a leaf from its first cell to its last: a lane of a full
// aggregate, a column, or one of the eight chains of a column where these are few. A leaf has few chains
// then, so a work-group takes several leaves at once, as long as there are groups for the whole device.
namespace heddle::ops {
namespace {

// Statements of a cell. A longer region is computed by all work-items of a tile, not by the few chains.
constexpr int64_t kMostStatements = 24;
// Rounds of a chain whose cells are loaded before the first is added.
constexpr int64_t kRoundsAtOnce = 8;
// Chains for each busy task with which cells are computed as fast by those who add them up.
constexpr int64_t kManyChains = 64;

bool AddsUpCells(const TileRoot& root) {
  return (root.kind == TileRoot::Kind::kFull || root.kind == TileRoot::Kind::kColumns) && !root.of_rows;
}

int64_t ChainsOf(const TileRoot& root) {
  if (root.kind == TileRoot::Kind::kFull) return 8;
  return root.n <= 8 ? 8 * root.n : root.n;
}

}  // namespace

bool TilePrinter::IsDirect() {
  if (is_alone_ || IsCut() || program_.by_pattern || program_.roots.empty() || !printed_.results.empty())
    return false;
  const TileRoot& first = program_.roots[0];
  for (const TileRoot& root : program_.roots)
    if (!AddsUpCells(root) || root.kind != first.kind || root.n != first.n || root.height != first.height)
      return false;
  // Cells of inputs, as they are or as buffers would repeat or widen them.
  const auto is_input = [&](const TileRef& ref) {
    return ref.kind == TileRef::Kind::kInput ||
           (ref.kind == TileRef::Kind::kBuffer && expanded_.contains(ref.index));
  };
  bool computes = false;
  for (const Step& step : program_.steps) {
    if (step.by_entries || step.right >= 0) return false;
    switch (step.kind) {
      case Step::Kind::kExpand:
        if (!is_input(step.from)) return false;
        expanded_[step.to.index] = step.from;
        break;
      case Step::Kind::kWiden:
        expanded_[step.to.index] = {TileRef::Kind::kInput, step.index, 0};
        break;
      case Step::Kind::kRoot:
        if (!is_input(step.from)) return false;
        break;
      case Step::Kind::kRegion:
        computes = true;
        for (const int root : step.output_roots)
          if (root < 0) return false;
        for (const RegionOperand& operand : step.operands)
          if (operand.from == RegionOperand::From::kTile && !is_input(operand.tile)) return false;
        break;
      default: return false;
    }
  }
  const int64_t chains = CeilDivide(program_.roles.rows, first.height) * ChainsOf(first);
  if (computes && chains < kManyChains * limits_.busy_tasks) return false;
  PrintDirectCell();
  const std::string cell = std::exchange(text_, {});
  return std::count(cell.begin(), cell.end(), '\n') <= kMostStatements;
}

// What a chain does with cell `c` of the leaf, in row `i` and column `j`, if it has one in this round.
void TilePrinter::PrintDirectCell() {
  const auto add = [&](int r, const std::string& x) {
    const TileRoot& root = program_.roots[static_cast<size_t>(r)];
    Line(5, fmt::format("{{ double next = acc{};", r));
    text_ += FoldStatement(6, FoldOf(root.aggregate), "next", x);
    Line(5, fmt::format("acc{0} = is_in ? next : acc{0}; }}", r));
  };
  for (const Step& step : program_.steps) {
    CellIndex index{.columns = program_.roots[0].n};
    if (step.kind == Step::Kind::kRoot) add(step.index, PlaceOf(step.from).Load(index));
    if (step.kind != Step::Kind::kRegion) continue;
    const Region& region = program_.regions[static_cast<size_t>(step.index)];
    Line(5, "{");
    printed::Printer printer("v", "          ");
    const std::vector<std::string> values = PrintNodes(step, index, printer);
    text_ += printer.TakeText();
    for (size_t o = 0; o < step.outputs.size(); ++o)
      add(step.output_roots[o], values[static_cast<size_t>(region.outputs[o].node)]);
    Line(5, "}");
  }
}

void TilePrinter::PrintDirect() {
  const TileRoot& first = program_.roots[0];
  const int64_t chains = ChainsOf(first), n = first.n;
  const int64_t leaves = CeilDivide(program_.roles.rows, first.height);
  const int64_t together =
      std::max<int64_t>(1, std::min(limits_.group_size / chains, leaves / limits_.busy_tasks));
  printed_.passes = {{.task_rows = together * first.height}};
  PrintHead();
  PrintLoopOverTasks();
  Line(2, fmt::format("const long first_row = task * {};", together * first.height));
  Line(2, fmt::format("const int most = (int)min((long){}, rows - first_row);", first.height));
  Line(2, fmt::format("for (int from = 0; from < {}; from += {}) {{", together * chains, limits_.group_size));
  Line(3, fmt::format("const int chain = from + item, leaf = chain / {0}, p = chain % {0};", chains));
  Line(3, fmt::format("const long own_row = first_row + (long)leaf * {};", first.height));
  Line(3, fmt::format("const int is_mine = leaf < {} && own_row < rows;", together));
  // Who has no chain reads cells of the first leaf, and nobody reads what it adds up.
  Line(3, "const long row = is_mine ? own_row : first_row;");
  Line(3, fmt::format("const int size = (int)min((long){}, rows - row);", first.height));
  for (size_t r = 0; r < program_.roots.size(); ++r)
    Line(3, fmt::format("double acc{} = {};", r, printed::StartOf(FoldOf(program_.roots[r].aggregate))));
  const bool full = first.kind == TileRoot::Kind::kFull;
  const int64_t step = full ? chains : chains / n;  // Cells or rows of a round.
  const std::string rounds = fmt::format("for (int base = 0; base < most * {}; base += {}) {{", full ? n : 1,
                                         step * kRoundsAtOnce);
  Line(3, rounds);
  for (int64_t round = 0; round < kRoundsAtOnce; ++round) {
    Line(4, "{");
    if (full) {
      Line(4, fmt::format("const int at = base + {} + p, is_in = at < size * {};", round * step, n));
      Line(4, fmt::format("const int c = is_in ? at : 0, i = c / {0}, j = c - i * {0};", n));
    } else {
      Line(4, fmt::format("const int at = base + {} + p / {}, is_in = at < size;", round * step, n));
      Line(4, fmt::format("const int i = is_in ? at : 0, j = p % {0}, c = i * {0} + j;", n));
    }
    PrintDirectCell();
    Line(4, "}");
  }
  Line(3, "}");
  Line(3, "if (is_mine) {");
  for (size_t r = 0; r < program_.roots.size(); ++r) {
    const TileRoot& root = program_.roots[r];
    const std::string payload = fmt::format("root{}[row / {} * {} + p", r, root.height, root.width);
    Line(4, fmt::format("{}] = acc{};", payload, r));
    if (root.width > chains)  // Whole eights.
      Line(4, fmt::format("if (p < {}) {} + {}] = {};", root.width - chains, payload, chains,
                          printed::StartOf(FoldOf(root.aggregate))));
  }
  Line(3, "}");
  Line(2, "}");
  Line(1, "}");
  text_ += "}\n";
  printed_.passes[0].source = std::string(printed::Prelude()) + text_;
}

}  // namespace heddle::ops
