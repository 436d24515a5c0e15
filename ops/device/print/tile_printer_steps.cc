// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate/wide_sums.h"
#include "ops/device/print/tile_printer.h"
#include "ops/product/matmul.h"

namespace heddle::ops {

std::string TilePrinter::LoadOperand(const Step& step, const RegionNode& node) const {
  const RegionOperand& operand = step.operands[static_cast<size_t>(node.input)];
  std::string_view i = "i", j = "j";
  if (node.access == Access::kPerRow || node.access == Access::kScalar) j = "0";
  if (node.access == Access::kPerColumn || node.access == Access::kScalar) i = "0";
  switch (operand.from) {
    case RegionOperand::From::kTile: return PlaceOf(operand.tile).Load(i, j);
    case RegionOperand::From::kWhole: return WholeOf(operand.index).Load(i, j);
    case RegionOperand::From::kRepeated:
      return WholeOf(program_.repeated[static_cast<size_t>(operand.index)].input).Load("0", j);
    case RegionOperand::From::kScalar: break;
  }
  return fmt::format("s{}", operand.index);
}

TilePrinter::Cells TilePrinter::WholeOf(int input) const {
  return {fmt::format("(in{} + first{})", input, input), InfoOfInput(input).shape.columns,
          IsSingleInput(input)};
}

void TilePrinter::PrintRegion(const Step& step) {
  const Region& region = program_.regions[static_cast<size_t>(step.index)];
  Line(3, Each("c", fmt::format("n * {}", step.columns)));
  Line(4, fmt::format("const int i = c / {}, j = c - i * {};", step.columns, step.columns));
  {
    printed::Printer printer("v", "        ");
    std::vector<std::string> values;
    const auto value = [&](int node) { return node < 0 ? std::string() : values[static_cast<size_t>(node)]; };
    for (const RegionNode& node : region.nodes) {
      if (node.op == RegionOp::kInput) {
        std::string loaded = printer.Define("double", LoadOperand(step, node));
        if (node.drops_negative_zero) loaded = printer.Define("double", loaded + " + 0.0");
        values.push_back(std::move(loaded));
        continue;
      }
      values.push_back(printed::PrintNode(node, value(node.a), value(node.b), value(node.c)));
    }
    for (size_t o = 0; o < step.outputs.size(); ++o) {
      const Cells to = FoldsOutput(step, o) ? FoldedBuffer(step, o) : PlaceOf(step.outputs[o]);
      const std::string& cell = values[static_cast<size_t>(region.outputs[o].node)];
      printer.Line(to.single ? fmt::format("{} = convert_float_rte({});", to.At("i", "j"), cell)
                             : fmt::format("{} = {};", to.At("i", "j"), cell));
    }
    text_ += printer.TakeText();
  }
  Line(3, kEndOfEach);
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

std::string TilePrinter::FoldStatement(int depth, simd::Fold fold, std::string_view accumulator,
                                       const std::string& x) const {
  const std::string indent(static_cast<size_t>(2 * depth), ' ');
  printed::Printer printer("f", indent);
  const std::string loaded = printer.Define("double", x);
  const std::string folded = printed::PrintFold(fold, std::string(accumulator), loaded);
  return printer.TakeText() + fmt::format("{}{} = {};\n", indent, accumulator, folded);
}

void TilePrinter::PrintFoldRows(const Cells& from, int64_t columns, const Cells& to, simd::Fold fold,
                                bool is_mean, bool must_be_finite) {
  printed_.sets_flags |= must_be_finite;
  PrintLanes(
      "n", fold,
      [&] {
        PrintLaneLoop(columns);
        text_ += FoldStatement(6, fold, "acc", from.Load("w", "j"));
      },
      [&](const std::string& joined) {
        const std::string value = is_mean ? fmt::format("{} / {}.0", joined, columns) : joined;
        Line(5, fmt::format("const double folded = {};", value));
        Line(5, fmt::format("{} = folded;", to.At("w", "0")));
        if (must_be_finite) Line(5, "if (!isfinite(folded)) flags[0] = 1;");
      });
}

void TilePrinter::PrintMultiply(const Step& step) {
  const Cells from = PlaceOf(step.from), to = PlaceOf(step.to), right = WholeOf(step.right);
  const int64_t k = step.columns, inner = InfoOfInput(step.right).shape.rows;
  if (k <= kFewColumns) {
    PrintLanes(
        fmt::format("n * {}", k), simd::Fold::kAdd,
        [&] {
          Line(4, fmt::format("const int i = w / {}, c = w % {};", k, k));
          PrintLaneLoop(inner);
          Line(6, fmt::format("acc = fma({}, {}, acc);", from.Load("i", "j"), right.Load("j", "c")));
        },
        [&](const std::string& joined) { Line(5, fmt::format("{} = {} + 0.0;", to.At("i", "c"), joined)); });
    return;
  }
  const std::string count = fmt::format("n * {}", k);
  Line(3, EachTogether("w", count));
  Line(4, fmt::format("const int i = w / {}, c = w - i * {};", k, k));
  Line(4, "double acc = 0.0;");
  Line(4, fmt::format("for (int j = 0; j < {}; ++j)", inner));
  Line(5,
       fmt::format("if (w < {}) acc = fma({}, {}, acc);", count, from.Load("i", "j"), right.Load("j", "c")));
  Line(4, fmt::format("if (w < {}) {} = acc + 0.0;", count, to.At("i", "c")));
  Line(3, "}");
}

void TilePrinter::PrintRoot(const Step& step) {
  const auto r = static_cast<size_t>(step.index);
  const TileRoot& root = program_.roots[r];
  const Cells x = PlaceOf(step.from);
  if (root.kind == TileRoot::Kind::kFull || root.kind == TileRoot::Kind::kColumns)
    return PrintFoldIntoRoot(r, x, step.columns);
  const Cells y = PlaceOf(step.from_right);
  int64_t places = root.n * root.k, by = 1;
  std::string mine;
  switch (root.kind) {
    case TileRoot::Kind::kLanes:
      places *= kLanes;
      by = kLanes;
      break;
    case TileRoot::Kind::kVectors:
      places = root.padded * root.k;
      mine = fmt::format(" && j < {}", root.n);
      break;
    default: mine = root.symmetric ? " && c >= j" : "";
  }
  Line(3, EachTogether("p", std::to_string(places)));
  switch (root.kind) {
    case TileRoot::Kind::kLanes:
      Line(4, fmt::format("const int start = p / {}, cell = p % {}, j = cell / {}, c = cell % {};",
                          root.n * root.k, root.n * root.k, root.k, root.k));
      break;
    case TileRoot::Kind::kVectors:
      Line(4, fmt::format("const int start = 0, c = p / {}, j = p % {};", root.padded, root.padded));
      break;
    default: Line(4, fmt::format("const int start = 0, j = p / {}, c = p % {};", root.k, root.k));
  }
  Line(4, fmt::format("const int is_mine = p < {}{};", places, mine));
  Line(4, fmt::format("double acc = is_mine ? {} : 0.0;", PayloadOf(r)));
  Line(4, fmt::format("for (int base = 0; base < n; base += {}) {{", by));
  Line(5, "const int i = base + start;");
  Line(5, fmt::format("if (is_mine && i < n) acc = fma({}, {}, acc);", x.Load("i", "j"), y.Load("i", "c")));
  Line(4, "}");
  Line(4, fmt::format("if (is_mine) {} = acc;", PayloadOf(r)));
  Line(3, "}");
}

void TilePrinter::PrintFoldIntoRoot(size_t r, const Cells& x, int64_t columns) {
  const TileRoot& root = program_.roots[r];
  const simd::Fold fold = FoldOf(root.aggregate);
  const bool by_column = root.kind == TileRoot::Kind::kColumns && root.n > kLanes;
  const int64_t period = by_column                               ? columns
                         : root.kind == TileRoot::Kind::kColumns ? kLanes * columns
                                                                 : kLanes;
  Line(3, EachTogether("p", std::to_string(period)));
  Line(4, fmt::format("const int is_mine = p < {};", period));
  Line(4, fmt::format("double acc = is_mine ? {} : 0.0;", PayloadOf(r)));
  Line(4, fmt::format("for (int base = 0; base < n * {}; base += {}) {{", columns, period));
  Line(5, "const int cell = base + p;");
  Line(5, fmt::format("if (is_mine && cell < n * {}) {{", columns));
  Line(6, fmt::format("const int i = cell / {}, j = cell - i * {};", columns, columns));
  text_ += FoldStatement(6, fold, "acc", x.Load("i", "j"));
  Line(5, "}");
  Line(4, "}");
  Line(4, fmt::format("if (is_mine) {} = acc;", PayloadOf(r)));
  Line(3, "}");
}

}  // namespace heddle::ops
