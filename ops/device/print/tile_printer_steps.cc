// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate/wide_sums.h"
#include "ops/device/print/tile_printer.h"
#include "ops/product/matmul.h"
#include "ops/simd/product/gemm.h"

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

std::string TilePrinter::PrintJoinedLanes(simd::Fold fold) {
  printed::Printer printer("l", "          ");
  std::vector<std::string> r;
  for (int k = 0; k < 8; ++k)
    r.push_back(printer.Define("double", fmt::format("lanes[item - lane + {}]", k)));
  const auto join = [&](const std::string& a, const std::string& b) {
    return printed::PrintFold(fold, a, b);
  };
  const std::string even = join(join(r[0], r[4]), join(r[2], r[6]));
  const std::string odd = join(join(r[1], r[5]), join(r[3], r[7]));
  std::string joined = join(even, odd);
  text_ += printer.TakeText();
  return joined;
}

// simd::IndexOfExtreme: the last of the largest cells; NaN is none, and 1 stands for no cell.
void TilePrinter::PrintPlaceOfExtreme(const Step& step) {
  const Cells from = PlaceOf(step.from), to = PlaceOf(step.to);
  const int64_t at_once = limits_.group_size / kLanes;
  const char* const sign = step.aggregate == AggregateKind::kIndexMin ? "-" : "";
  Line(3, fmt::format("for (int base = 0; base < n; base += {}) {{", at_once));
  Line(4, "const int w = base + item / 8, lane = item % 8;");
  Line(4, "const int is_mine = w < n;");
  Line(4, "double acc = -INFINITY;");
  Line(4, "int place = -1;");
  PrintLaneLoop(step.columns);
  Line(6, fmt::format("const double x = {}{};", sign, from.Load("w", "j")));
  Line(6, "if (x >= acc) { acc = x; place = j; }");
  Line(5, "} }");
  Line(4, "lanes[item] = acc;");
  Line(4, "places[item] = place;");
  Line(4, "barrier(CLK_LOCAL_MEM_FENCE);");
  Line(4, "if (lane == 0 && is_mine) {");
  for (int k = 1; k < kLanes; ++k)
    Line(5, fmt::format("if (lanes[item + {0}] > acc || (lanes[item + {0}] == acc && places[item + {0}] > "
                        "place)) {{ acc = lanes[item + {0}]; place = places[item + {0}]; }}",
                        k));
  Line(5, fmt::format("{} = place < 0 ? 1.0 : (double)(place + 1);", to.At("w", "0")));
  Line(4, "}");
  Line(4, "barrier(CLK_LOCAL_MEM_FENCE);");
  Line(3, "}");
}

void TilePrinter::PrintSpreadOfRows(const Step& step) {
  const Cells from = PlaceOf(step.from), to = PlaceOf(step.to);
  PrintDeviations(
      "n", std::to_string(step.columns), [&](std::string_view j) { return from.Load("w", j); },
      [&] {  // SpreadOf
        std::string spread = step.columns < 2 ? "0.0" : fmt::format("squares / {}.0", step.columns - 1);
        if (step.columns < 1) spread = "as_double(0x7ff8000000000000UL)";
        if (step.aggregate == AggregateKind::kDeviation) spread = "sqrt(" + spread + ")";
        Line(5, fmt::format("const double spread = {};", spread));
        Line(5, fmt::format("{} = spread;", to.At("w", "0")));
        Line(5, "if (!isfinite(spread)) flags[0] = 1;");
      });
}

// ColumnMoments: the number of rows, the means, the sums of squared deviations.
void TilePrinter::PrintMoments(size_t r) {
  const TileRoot& root = program_.roots[r];
  const Cells x{fmt::format("(in{0} + first{0} + begin * {1})", root.input, root.n), root.n,
                IsSingleInput(root.input)};
  const auto payload = [&](std::string_view place) {
    return fmt::format("root{}[row / {} * {} + {}]", r, root.height, root.width, place);
  };
  Line(3, fmt::format("if ((row + n) % {} == 0 || row + n == rows) {{", root.height));
  Line(3, fmt::format("const long begin = row / {0} * {0};", root.height));
  Line(3, "const int size = (int)(row + n - begin);");
  Line(3, fmt::format("if (item == 0) {} = (double)size;", payload("0")));
  if (root.n > kLanes) {
    Line(3, EachTogether("p", std::to_string(root.n)));
    Line(4, fmt::format("const int is_mine = p < {};", root.n));
    Line(4, "double acc = 0.0, squares = 0.0;");
    Line(4, "for (int i = 0; i < size; ++i)");
    Line(5, fmt::format("if (is_mine) acc = acc + {};", x.Load("i", "p")));
    Line(4, "const double mean = acc / (double)size;");
    Line(4, "for (int i = 0; i < size; ++i)");
    Line(5, fmt::format("if (is_mine) {{ const double d = {} - mean; squares = squares + d * d; }}",
                        x.Load("i", "p")));
    Line(4, fmt::format("if (is_mine) {{ {} = mean; {} = squares; }}", payload("1 + p"),
                        payload(fmt::format("{} + p", 1 + root.n))));
    Line(3, "}");
  } else {
    PrintDeviations(
        std::to_string(root.n), "size", [&](std::string_view i) { return x.Load(i, "w"); },
        [&] {
          Line(5, fmt::format("{} = mean;", payload("1 + w")));
          Line(5, fmt::format("{} = squares;", payload(fmt::format("{} + w", 1 + root.n))));
        });
  }
  Line(3, "}");
}

// The sum over blocks of 64 columns, in doubles, of chains of floats.
void TilePrinter::PrintMultiplySingles(const Step& step) {
  const Cells from = PlaceOf(step.from), to = PlaceOf(step.to), right = WholeOf(step.right);
  const int64_t k = step.columns, inner = InfoOfInput(step.right).shape.rows;
  const std::string count = fmt::format("n * {}", k);
  Line(3, EachTogether("w", count));
  Line(4, fmt::format("const int i = w / {}, c = w - i * {};", k, k));
  Line(4, "double acc = 0.0;");
  Line(4, fmt::format("for (int block = 0; block < {}; block += {}) {{", inner, kSingleBlock));
  Line(5, "float chain = 0.0f;");
  Line(5, fmt::format("for (int j = block; j < min(block + {}, {}); ++j)", kSingleBlock, inner));
  Line(6, fmt::format("if (w < {}) chain = fma({}, {}, chain);", count, from.LoadSingle("i", "j"),
                      right.LoadSingle("j", "c")));
  Line(5, "acc = acc + (double)chain;");
  Line(4, "}");
  Line(4, fmt::format("if (w < {}) {} = acc;", count, to.At("i", "c")));
  Line(3, "}");
}

void TilePrinter::PrintAddSingles(const Step& step) {
  const auto r = static_cast<size_t>(step.index);
  const TileRoot& root = program_.roots[r];
  const Cells x = PlaceOf(step.from), y = PlaceOf(step.from_right);
  const bool is_open = HasOpenChains(root);
  Line(3, EachTogether("p", std::to_string(root.width)));
  Line(4, fmt::format("const int j = p / {}, c = p % {};", root.k, root.k));
  Line(4, fmt::format("const int is_mine = p < {}{};", root.width, root.symmetric ? " && c >= j" : ""));
  if (is_open)
    Line(4, fmt::format("float chain = row % {} != 0 && is_mine ? (float)chains{}[p] : 0.0f;",
                        kSingleBlock, r));
  else
    Line(4, "float chain = 0.0f;");
  Line(4, "for (int i = 0; i < n; ++i)");
  Line(5, fmt::format("if (is_mine) chain = fma({}, {}, chain);", x.LoadSingle("i", "j"),
                      y.LoadSingle("i", "c")));
  const std::string add = fmt::format("{0} = {0} + (double)chain;", PayloadOf(r));
  if (is_open)
    Line(4, fmt::format("if (is_mine) {{ if ((row + n) % {} == 0 || row + n == rows) {} else chains{}[p] = "
                        "(double)chain; }}",
                        kSingleBlock, add, r));
  else
    Line(4, "if (is_mine) " + add);
  Line(3, "}");
}

void TilePrinter::PrintMultiply(const Step& step) {
  if (MultipliesSingles(program_, step)) return PrintMultiplySingles(step);
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
  if (AddsSingles(program_, root)) return PrintAddSingles(step);
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
