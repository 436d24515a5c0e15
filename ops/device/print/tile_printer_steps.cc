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
  Line(3, fmt::format("for (int c = item; c < n * {}; c += {}) {{", step.columns, limits_.group_size));
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
  Line(3, "}");
  for (size_t o = 0; o < step.outputs.size(); ++o) {
    if (!FoldsOutput(step, o)) continue;
    Barrier();
    const Cells cells = FoldedBuffer(step, o);
    if (const int root = step.output_roots[o]; root >= 0) {
      PrintFoldIntoRoot(static_cast<size_t>(root), cells, step.columns);
      continue;
    }
    const RegionOutput& output = region.outputs[o];
    const Aggregate& aggregate = *FindAggregate(NameOf(step.output_folds[o]));
    PrintFoldRows(cells, step.columns, aggregate.kind, PlaceOf(step.outputs[o]), output.fold, output.is_mean,
                  AddsUp(aggregate.kind) && !program_.single);
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

void TilePrinter::PrintFoldRows(const Cells& from, int64_t columns, AggregateKind, const Cells& to,
                                simd::Fold fold, bool is_mean, bool must_be_finite) {
  PrintLanes(
      "n", fold,
      [&] {
        Line(5, fmt::format("for (int j = lane; j < {}; j += 8) {{", columns));
        text_ += FoldStatement(6, fold, "acc", from.Load("w", "j"));
        Line(5, "}");
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
          Line(5, fmt::format("const int i = w / {}, c = w % {};", k, k));
          Line(5, fmt::format("for (int j = lane; j < {}; j += 8)", inner));
          Line(6, fmt::format("acc = fma({}, {}, acc);", from.Load("i", "j"), right.Load("j", "c")));
        },
        [&](const std::string& joined) {
          Line(5, fmt::format("const int i = w / {}, c = w % {};", k, k));
          Line(5, fmt::format("{} = {};", to.At("i", "c"), joined));
        });
    return;
  }
  Line(3, fmt::format("for (int w = item; w < n * {}; w += {}) {{", k, limits_.group_size));
  Line(4, fmt::format("const int i = w / {}, c = w - i * {};", k, k));
  Line(4, "double acc = 0.0;");
  Line(4, fmt::format("for (int j = 0; j < {}; ++j) acc = fma({}, {}, acc);", inner, from.Load("i", "j"),
                      right.Load("j", "c")));
  Line(4, fmt::format("{} = acc + 0.0;", to.At("i", "c")));
  Line(3, "}");
}

void TilePrinter::PrintRoot(const Step& step) {
  const TileRoot& root = program_.roots[static_cast<size_t>(step.index)];
  const auto r = static_cast<size_t>(step.index);
  const Cells x = PlaceOf(step.from);
  if (root.kind == TileRoot::Kind::kFull || root.kind == TileRoot::Kind::kColumns)
    return PrintFoldIntoRoot(r, x, step.columns);
  const Cells y = PlaceOf(step.from_right);
  int64_t places = root.n * root.k;
  if (root.kind == TileRoot::Kind::kLanes) places *= kLanes;
  if (root.kind == TileRoot::Kind::kVectors) places = root.padded * root.k;
  Line(3, EachPlace(places));
  int depth = 4;
  switch (root.kind) {
    case TileRoot::Kind::kLanes:
      Line(4, fmt::format("const int start = p / {}, cell = p % {}, j = cell / {}, c = cell % {};",
                          root.n * root.k, root.n * root.k, root.k, root.k));
      break;
    case TileRoot::Kind::kVectors:
      Line(4, fmt::format("const int start = 0, c = p / {}, j = p % {};", root.padded, root.padded));
      Line(4, fmt::format("if (j < {}) {{", root.n));
      depth = 5;
      break;
    default:
      Line(4, fmt::format("const int start = 0, j = p / {}, c = p % {};", root.k, root.k));
      if (root.symmetric) Line(4, "if (c >= j) {");
      if (root.symmetric) depth = 5;
  }
  const char* const by = root.kind == TileRoot::Kind::kLanes ? "i += 8" : "++i";
  Line(depth, fmt::format("double acc = {};", PayloadOf(r)));
  Line(depth, fmt::format("for (int i = start; i < n; {}) acc = fma({}, {}, acc);", by, x.Load("i", "j"),
                          y.Load("i", "c")));
  Line(depth, fmt::format("{} = acc;", PayloadOf(r)));
  if (depth == 5) Line(4, "}");
  Line(3, "}");
}

void TilePrinter::PrintFoldIntoRoot(size_t r, const Cells& x, int64_t columns) {
  const TileRoot& root = program_.roots[r];
  const simd::Fold fold = FoldOf(root.aggregate);
  const bool by_column = root.kind == TileRoot::Kind::kColumns && root.n > kLanes;
  const int64_t period = by_column                               ? columns
                         : root.kind == TileRoot::Kind::kColumns ? kLanes * columns
                                                                 : kLanes;
  Line(3, EachPlace(period));
  Line(4, fmt::format("double acc = {};", PayloadOf(r)));
  if (by_column) {
    Line(4, "for (int i = 0; i < n; ++i) {");
    text_ += FoldStatement(5, fold, "acc", x.Load("i", "p"));
  } else {
    Line(4, fmt::format("for (int c = p; c < n * {}; c += {}) {{", columns, period));
    Line(5, fmt::format("const int i = c / {}, j = c - i * {};", columns, columns));
    text_ += FoldStatement(5, fold, "acc", x.Load("i", "j"));
  }
  Line(4, "}");
  Line(4, fmt::format("{} = acc;", PayloadOf(r)));
  Line(3, "}");
}

}  // namespace heddle::ops
