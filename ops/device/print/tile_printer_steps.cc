// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/values/sizes.h"
#include "ops/device/print/tile_printer.h"
#include "ops/product/matmul.h"
#include "ops/simd/product/gemm.h"

namespace heddle::ops {
namespace {

// Statements of a cell that take longer than its way from memory.
constexpr int64_t kManyStatements = 24;
// How far ahead of the cells that are computed lines are fetched: four lines were too few for exp of two
// matrices, 16 to 64 as good as each other.
constexpr int64_t kCellsAhead = 256;

}  // namespace

std::string TilePrinter::LoadOperand(const Step& step, const RegionNode& node, CellIndex& index) const {
  const RegionOperand& operand = step.operands[static_cast<size_t>(node.input)];
  Cells cells;
  switch (operand.from) {
    case RegionOperand::From::kTile: cells = PlaceOf(operand.tile); break;
    case RegionOperand::From::kWhole: cells = WholeOf(operand.index); break;
    case RegionOperand::From::kRepeated:
      index.needs_row = index.needs_column = true;
      return WholeOf(program_.repeated[static_cast<size_t>(operand.index)].input).Load("0", "j");
    case RegionOperand::From::kScalar: return fmt::format("s{}", operand.index);
  }
  switch (node.access) {
    case Access::kPerRow: index.needs_row = true; return cells.Load("i", "0");
    case Access::kPerColumn: index.needs_row = index.needs_column = true; return cells.Load("0", "j");
    case Access::kScalar: return cells.Load("0", "0");
    default: return cells.Load(index);
  }
}

TilePrinter::Cells TilePrinter::WholeOf(int input) const {
  const Shape& shape = InfoOfInput(input).shape;
  const char* const place = IsCut() && shape.columns > 1 ? " + begin" : "";
  return {.base = fmt::format("(in{} + first{}{})", input, input, place),
          .stride = shape.columns,
          .single = IsSingleInput(input),
          .is_large = SaturatingProduct(shape.rows, shape.columns) > INT32_MAX};
}

std::vector<std::string> TilePrinter::PrintNodes(const Step& step, CellIndex& cell,
                                                 printed::Printer& printer) const {
  std::vector<std::string> values;
  const auto value = [&](int node) { return node < 0 ? std::string() : values[static_cast<size_t>(node)]; };
  for (const RegionNode& node : program_.regions[static_cast<size_t>(step.index)].nodes) {
    if (node.op == RegionOp::kInput) {
      std::string loaded = printer.Define("double", LoadOperand(step, node, cell));
      if (node.drops_negative_zero) loaded = printer.Define("double", loaded + " + 0.0");
      values.push_back(std::move(loaded));
      continue;
    }
    values.push_back(printed::PrintNode(node, value(node.a), value(node.b), value(node.c)));
  }
  return values;
}

void TilePrinter::PrintRegion(const Step& step) {
  const Region& region = program_.regions[static_cast<size_t>(step.index)];
  CellIndex needed;
  std::string statements;
  const auto print_cell = [&](CellIndex& cell) {
    printed::Printer printer("v", "        ");
    const std::vector<std::string> values = PrintNodes(step, cell, printer);
    for (size_t o = 0; o < step.outputs.size(); ++o) {
      const Cells to = FoldsOutput(step, o) ? FoldedBuffer(step, o) : PlaceOf(step.outputs[o]);
      printer.Line(fmt::format("{} = {};", to.At(cell),
                               to.Stored(values[static_cast<size_t>(region.outputs[o].node)])));
    }
    statements = printer.TakeText();
    needed = cell;
    text_ += statements;
  };
  const size_t before = text_.size();
  PrintCells(step.columns, print_cell);
  // A processor that computes a line for long does not see the next ones coming.
  const bool is_heavy = std::count(statements.begin(), statements.end(), '\n') > kManyStatements;
  if (is_alone_ && is_heavy && !IsCut() && !needed.needs_row && !needed.needs_column &&
      !CallsPrelude(statements)) {
    text_.resize(before);
    Line(3, fmt::format("for (int block = 0; block < n * {}; block += {}) {{", step.columns, kLanes));
    for (const RegionOperand& operand : step.operands)
      if (operand.from == RegionOperand::From::kTile && operand.tile.kind == TileRef::Kind::kInput)
        Line(4, fmt::format("FETCH({} + block + {});", PlaceOf(operand.tile).base, kCellsAhead));
    Line(4, fmt::format("const int end = min(block + {}, n * {});", kLanes, step.columns));
    Line(4, InVectors("for (int c = block; c < end; ++c) {"));
    text_ += statements;
    Line(3, kEndOfEach);
  }
  for (size_t o = 0; o < step.outputs.size(); ++o) {
    if (!FoldsOutput(step, o)) continue;
    Barrier();
    const Cells cells = FoldedBuffer(step, o);
    if (const int root = step.output_roots[o]; root >= 0) {
      PrintFoldIntoRoot(static_cast<size_t>(root), cells, step.columns);
      continue;
    }
    const RegionOutput& output = region.outputs[o];
    // Sums that may have to be added again name their node.
    const bool must_be_finite = !step.output_folds.empty() && step.output_folds[o] != kNoNode;
    PrintFoldRows(cells, step.columns, PlaceOf(step.outputs[o]), output.fold, output.is_mean, must_be_finite);
  }
}

TilePrinter::Cells TilePrinter::FoldedBuffer(const Step& step, size_t o) const {
  const int buffer = folded_buffers_.at({&step, o});
  return {fmt::format("b{}", buffer), buffer_columns_[static_cast<size_t>(buffer)]};
}

void TilePrinter::PrintMultiply(const Step& step) {
  if (step.index >= 0 || IsByEntry(step.from)) return PrintMultiplyEntries(step);
  if (MultipliesSingles(program_, step)) return PrintMultiplySingles(step);
  const Cells from = PlaceOf(step.from), to = PlaceOf(step.to), right = WholeOf(step.right);
  const int64_t k = step.columns, inner = InfoOfInput(step.right).shape.rows;
  const std::string count = fmt::format("n * {}", k);
  if (k <= kFewColumns) {
    const std::string i = k == 1 ? "w" : fmt::format("w / {}", k),
                      c = k == 1 ? "0" : fmt::format("w % {}", k);
    PrintLanes(
        count, inner, simd::Fold::kAdd,
        [&](const std::string& acc, const Loader& load) {
          Line(6, fmt::format("{0} = fma({1}, {2}, {0});", acc, load.Row(from, i, "0.0"),
                              load.Column(right, c, "0.0")));
        },
        [&](const std::string& joined) { Line(5, fmt::format("{} = {} + 0.0;", to.At(i, c), joined)); });
    return;
  }
  if (is_alone_) {
    Line(3, "for (int i = 0; i < n; ++i) {");
    const std::string columns = InVectors(fmt::format("for (int c = 0; c < {}; ++c)", k));
    const std::string place = to.At("i", "c");
    Line(4, fmt::format("{} {} = 0.0;", columns, place));
    PrintChainsAlone(columns, std::to_string(inner), place, [&](const std::string& j) {
      Line(5, fmt::format("acc = fma({}, {}, acc);", from.Load("i", j), right.Load(j, "c")));
    });
    Line(4, fmt::format("{0} {1} = {1} + 0.0;", columns, place));
    Line(3, "}");
    return;
  }
  Line(3, EachTogether("w", count));
  Line(4, fmt::format("const int i = w / {}, c = w - i * {};", k, k));
  Line(4, "double acc = 0.0;");
  Line(4, fmt::format("for (int j = 0; j < {}; ++j)", inner));
  Line(5,
       fmt::format("if (w < {}) acc = fma({}, {}, acc);", count, from.Load("i", "j"), right.Load("j", "c")));
  Line(4, fmt::format("if (w < {}) {} = acc + 0.0;", count, to.At("i", "c")));
  Line(3, "}");
}

// The sum over blocks of 64 columns, in doubles, of chains of floats.
void TilePrinter::PrintMultiplySingles(const Step& step) {
  const Cells from = PlaceOf(step.from), to = PlaceOf(step.to), right = WholeOf(step.right);
  const int64_t k = step.columns, inner = InfoOfInput(step.right).shape.rows;
  const std::string count = fmt::format("n * {}", k);
  const std::string blocks =
      fmt::format("for (int block = 0; block < {}; block += {}) {{", inner, kSingleBlock);
  const std::string block =
      fmt::format("for (int j = block; j < min(block + {}, {}); ++j)", kSingleBlock, inner);
  if (is_alone_) {
    Line(3, fmt::format("for (int i = 0; i < n; ++i) for (int strip = 0; strip < {0}; strip += {1}) {{", k,
                        kStripColumns));
    Line(4, fmt::format("const int width = min({}, {} - strip);", kStripColumns, k));
    Line(4, fmt::format("double acc[{0}]; float chain[{0}];", kStripColumns));
    Line(4, "for (int c = 0; c < width; ++c) acc[c] = 0.0;");
    Line(4, blocks);
    Line(5, "for (int c = 0; c < width; ++c) chain[c] = 0.0f;");
    Line(5, block);
    Line(6, fmt::format("for (int c = 0; c < width; ++c) chain[c] = fma({}, {}, chain[c]);",
                        from.LoadSingle("i", "j"), right.LoadSingle("j", "strip + c")));
    Line(5, "for (int c = 0; c < width; ++c) acc[c] = acc[c] + (double)chain[c];");
    Line(4, "}");
    Line(4, fmt::format("for (int c = 0; c < width; ++c) {} = acc[c];", to.At("i", "strip + c")));
    Line(3, "}");
    return;
  }
  Line(3, EachTogether("w", count));
  Line(4, fmt::format("const int i = w / {}, c = w - i * {};", k, k));
  Line(4, "double acc = 0.0;");
  Line(4, blocks);
  Line(5, "float chain = 0.0f;");
  Line(5, block);
  Line(6, fmt::format("if (w < {}) chain = fma({}, {}, chain);", count, from.LoadSingle("i", "j"),
                      right.LoadSingle("j", "c")));
  Line(5, "acc = acc + (double)chain;");
  Line(4, "}");
  Line(4, fmt::format("if (w < {}) {} = acc;", count, to.At("i", "c")));
  Line(3, "}");
}

}  // namespace heddle::ops
