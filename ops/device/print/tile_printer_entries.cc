// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "core/values/panels.h"
#include "ops/aggregate/wide_sums.h"
#include "ops/device/print/tile_printer.h"
#include "ops/product/matmul.h"
#include "ops/simd/product/gemm.h"

// Steps along the entries of CSR inputs, in the lanes and chains that dense rows have (docs/numerics.md,
// section 3): what is absent changes none of them. An explicit zero counts as absent.
namespace heddle::ops {

void TilePrinter::BeginEntries(int input, std::string_view row, const std::string& first,
                               const std::string& last) {
  const std::string begin = fmt::format("offsets{}[row + {}]", input, row),
                    end = fmt::format("offsets{}[row + {} + 1]", input, row);
  if (is_alone_) {
    Line(4, fmt::format("for (long e = {}; e < {}; ++e) {{", begin, end));
    return Line(5, "const int is_mine = 1;");
  }
  Line(4, "long most = 0;");
  Line(4, fmt::format(
              "for (int i = {0}; i < {1}; ++i) most = max(most, offsets{2}[row + i + 1] - offsets{2}[row + "
              "i]);",
              first, last, input));
  Line(4, fmt::format("const long begin = is_mine_row ? {} : 0, end = is_mine_row ? {} : 0;", begin, end));
  Line(4, "for (long entry = 0; entry < most; ++entry) { const long e = begin + entry;");
  Line(5, "const int is_mine = e < end;");
}

// Columns of a tile are zeros, then each row puts its entries there.
void TilePrinter::PrintDensify(int input, const Cells& to) {
  PrintCells(to.stride, [&](CellIndex& cell) { Line(5, to.At(cell) + " = 0.0;"); });
  Barrier();
  Line(3, EachTogether("i", "n"));
  if (!is_alone_) Line(4, "const int is_mine_row = i < n;");
  if (!is_alone_) {
    // The rows of all work-items of the round: `from` is that of the first.
    Line(4, "const int last = min(from + " + std::to_string(limits_.group_size) + ", n), row_of_item = i;");
    Line(4, "{");
    BeginEntries(input, "row_of_item", "from", "last");
    Line(5, fmt::format("if (is_mine) {} = {};", to.At("row_of_item", fmt::format("columns{}[e]", input)),
                        ValueAt(input)));
    Line(4, "} }");
  } else {
    BeginEntries(input, "i", "", "");
    Line(5, fmt::format("{} = {};", to.At("i", fmt::format("columns{}[e]", input)), ValueAt(input)));
    Line(4, "}");
  }
  Line(3, "}");
}

// Sums and means, whose lanes follow from the columns; minima and maxima, which have no order.
void TilePrinter::PrintFoldEntries(const Step& step) {
  const simd::Fold fold = FoldOf(step.aggregate);
  const Cells to = PlaceOf(step.to);
  const auto [input, value] = EntriesOf(step, step.index);
  const int64_t columns = InfoOfInput(input).shape.columns;
  const bool must_be_finite = AddsUp(step.aggregate) && !program_.single;
  printed_.sets_flags |= must_be_finite;
  BeginRuns("n");
  if (!is_alone_)
    Line(4, fmt::format("const int is_mine_row = w < n, last = min(base + {}, n);",
                        limits_.group_size / kLanes));
  const std::string start = printed::StartOf(fold), lane_of_entry = fmt::format("columns{}[e] & 7", input);
  Line(4, is_alone_ ? fmt::format("double acc[8]; for (int k = 0; k < 8; ++k) acc[k] = {};", start)
                    : fmt::format("double acc = {};", start));
  const bool by_chunks = columns > kColumnChunk && fold == simd::Fold::kAdd;  // Extremes have no order.
  if (by_chunks) BeginChunks(columns);
  Line(4, "{");
  BeginEntries(input, "w", "base", "last");
  if (by_chunks) NextChunk(input, columns);
  if (is_alone_) {
    Line(5, fmt::format("const int at = {};", lane_of_entry));
    text_ += FoldStatement(5, fold, "acc[at]", value);
  } else {
    Line(5, fmt::format("if (is_mine && ({}) == lane) {{", lane_of_entry));
    text_ += FoldStatement(6, fold, "acc", value);
    Line(5, "}");
  }
  Line(4, "} }");
  if (by_chunks) EndChunks(columns);
  if (fold == simd::Fold::kMinimum || fold == simd::Fold::kMaximum) {
    Line(4, fmt::format("if ({}offsets{}[row + w + 1] - offsets{}[row + w] < {}) {{",
                        is_alone_ ? "" : "lane == 0 && is_mine_row && ", input, input, columns));
    text_ += FoldStatement(5, fold, is_alone_ ? "acc[0]" : "acc", "0.0");
    Line(4, "}");
  }
  if (is_alone_) Line(4, "const double8 joined = vload8(0, acc);");
  ShareLanes("acc");
  Line(4, is_alone_ ? "{" : "if (lane == 0 && is_mine_row) {");
  const std::string joined = PrintJoinedLanes(fold, is_alone_ ? "joined" : "acc");
  Line(5, fmt::format("const double folded = {};", step.aggregate == AggregateKind::kMean
                                                       ? fmt::format("{} / {}.0", joined, columns)
                                                       : joined));
  Line(5, fmt::format("{} = folded;", to.At("w", "0")));
  if (must_be_finite) Line(5, "if (!isfinite(folded)) flags[0] = 1;");
  Line(4, "}");
  EndRuns();
}

void TilePrinter::PrintMultiplyEntries(const Step& step) {
  if (MultipliesSingles(program_, step)) return PrintMultiplySingleEntries(step);
  const Cells to = PlaceOf(step.to), right = WholeOf(step.right);
  const auto [input, value] = EntriesOf(step, step.index);
  const int64_t k = step.columns;
  const std::string column = fmt::format("columns{}[e]", input);
  if (is_alone_ && k > kFewColumns) {
    const std::string columns = fmt::format("for (int c = 0; c < {}; ++c)", k), place = to.At("i", "c");
    Line(3, "for (int i = 0; i < n; ++i) {");
    Line(4, fmt::format("{} {} = 0.0;", columns, place));
    BeginEntries(input, "i", "", "");
    Line(5, fmt::format("const double x = {}; if (x == 0.0) continue;", value));
    Line(5, fmt::format("{0} {1} = fma(x, {2}, {1});", columns, place, right.Load(column, "c")));
    Line(4, "}");
    Line(4, fmt::format("{0} {1} = {1} + 0.0;", columns, place));
    return Line(3, "}");
  }
  if (k > kFewColumns) {
    BeginCellsByEntries(k);
    Line(4, "double acc = 0.0; {");
    BeginEntries(input, "w", "first", "last");
    Line(5, fmt::format("const double x = is_mine ? {} : 0.0;", value));
    Line(5, fmt::format("if (x != 0.0) acc = fma(x, {}, acc);", right.Load(column, "c")));
    Line(4, "} }");
    Line(4, fmt::format("if (is_mine_row) {} = acc + 0.0;", to.At("w", "c")));
    return Line(3, "}");
  }
  // Eight lanes of each cell.
  const std::string i = k == 1 ? "w" : fmt::format("(w / {})", k),
                    c = k == 1 ? "0" : fmt::format("w % {}", k);
  BeginRuns(fmt::format("n * {}", k));
  if (!is_alone_)
    Line(4, fmt::format(
                "const int is_mine_row = is_mine, first = base / {0}, last = min((base + {1}) / {0} + 1, n);",
                k, limits_.group_size / kLanes));
  Line(4, is_alone_ ? "double acc[8]; for (int k = 0; k < 8; ++k) acc[k] = 0.0;" : "double acc = 0.0;");
  const int64_t columns = InfoOfInput(input).shape.columns;
  const bool by_chunks = columns > kColumnChunk;
  if (by_chunks) BeginChunks(columns);
  Line(4, "{");
  BeginEntries(input, i, "first", "last");
  if (by_chunks) NextChunk(input, columns);
  const std::string mine = is_alone_ ? "is_mine" : fmt::format("is_mine && ({} & 7) == lane", column);
  Line(5, fmt::format("const double x = {} ? {} : 0.0;", mine, value));
  Line(5, fmt::format("if (x != 0.0) {0} = fma(x, {1}, {0});",
                      is_alone_ ? fmt::format("acc[{} & 7]", column) : "acc", right.Load(column, c)));
  Line(4, "} }");
  if (by_chunks) EndChunks(columns);
  if (is_alone_) Line(4, "const double8 joined = vload8(0, acc);");
  ShareLanes("acc");
  Line(4, is_alone_ ? "{" : "if (lane == 0 && is_mine_row) {");
  const std::string joined = PrintJoinedLanes(simd::Fold::kAdd, is_alone_ ? "joined" : "acc");
  Line(5, fmt::format("{} = {} + 0.0;", to.At(i, c), joined));
  Line(4, "}");
  EndRuns();
}

// The sum over blocks of 64 columns, in doubles, of chains of floats: a block that has no entry adds nothing.
void TilePrinter::PrintMultiplySingleEntries(const Step& step) {
  const Cells to = PlaceOf(step.to), right = WholeOf(step.right);
  const auto [input, value] = EntriesOf(step, step.index);
  const int64_t k = step.columns;
  const std::string column = fmt::format("columns{}[e]", input);
  const std::string place_of_block = fmt::format("const int place = {} / {};", column, kSingleBlock);
  if (is_alone_) {
    Line(3, fmt::format("for (int i = 0; i < n; ++i) for (int strip = 0; strip < {0}; strip += {1}) {{", k,
                        kStripColumns));
    const auto each = [](std::string_view body) {
      return fmt::format("for (int c = 0; c < width; ++c) {{ {} }}", body);
    };
    const std::string end_block = each("acc[c] = acc[c] + (double)chain[c]; chain[c] = 0.0f;");
    Line(4, fmt::format("const int width = min({}, {} - strip); int block = 0;", kStripColumns, k));
    Line(4, fmt::format("double acc[{0}]; float chain[{0}];", kStripColumns));
    Line(4, each("acc[c] = 0.0; chain[c] = 0.0f;"));
    BeginEntries(input, "i", "", "");
    Line(5, place_of_block);
    Line(5, fmt::format("if (place != block) {{ {} block = place; }}", end_block));
    Line(5, fmt::format("const float x = convert_float_rte({});", value));
    Line(5, fmt::format("if (x != 0.0f) {}",
                        each(fmt::format("chain[c] = fma(x, {}, chain[c]);",
                                         right.LoadSingle(column, "strip + c")))));
    Line(4, "}");
    Line(4, end_block);
    Line(4, each(fmt::format("{} = acc[c];", to.At("i", "strip + c"))));
    return Line(3, "}");
  }
  BeginCellsByEntries(k);
  Line(4, "double acc = 0.0; float chain = 0.0f; int block = 0; {");
  BeginEntries(input, "w", "first", "last");
  Line(5, "if (is_mine) {");
  Line(6, place_of_block);
  Line(6, "if (place != block) { acc = acc + (double)chain; chain = 0.0f; block = place; }");
  Line(6, fmt::format("const float x = convert_float_rte({});", value));
  Line(6, fmt::format("if (x != 0.0f) chain = fma(x, {}, chain);", right.LoadSingle(column, "c")));
  Line(5, "}");
  Line(4, "} }");
  Line(4, fmt::format("if (is_mine_row) {} = acc + (double)chain;", to.At("w", "c")));
  Line(3, "}");
}

// t(X) %*% Y of floats. A block of 64 rows has its chains in an array that is zeros between blocks: whoever
// ends the block goes over its entries once more, adds their chains to the sums and leaves zeros.
void TilePrinter::PrintAddSingleEntries(const Step& step) {
  const auto r = static_cast<size_t>(step.index);
  const TileRoot& root = program_.roots[r];
  const Cells y = PlaceOf(step.from_right);
  const auto [input, value] = EntriesOf(step, step.right);
  const std::string place = fmt::format("columns{}[e] * {} + c", input, root.k);
  // Each entry of row `at` beside each column of Y.
  const auto each_term = [&](std::string_view at, const std::string& body) {
    Line(5, fmt::format("const long begin = offsets{0}[{1}], end = offsets{0}[{1} + 1];", input, at));
    if (is_alone_) {
      Line(5, fmt::format("for (long e = begin; e < end; ++e) for (int c = 0; c < {}; ++c) {{", root.k));
      Line(6, body);
      return Line(5, "}");
    }
    Line(5, fmt::format("for (long from = 0; from < (end - begin) * {}; from += {}) {{", root.k,
                        limits_.group_size));
    Line(6,
         fmt::format("const long e = begin + (from + item) / {0}; const int c = (int)((from + item) % {0});",
                     root.k));
    Line(6, fmt::format("if (e < end) {{ {} }}", body));
    Line(5, "}");
    Barrier();
  };
  Line(3, "for (int i = 0; i < n; ++i) {");
  Line(4, "{");
  each_term("row + i", fmt::format("const float x = convert_float_rte({0}); if (x != 0.0f) chains{1}[{2}] = "
                                   "(double)fma(x, {3}, (float)chains{1}[{2}]);",
                                   value, r, place, y.LoadSingle("i", "c")));
  Line(4, "}");
  Line(4, fmt::format("if ((row + i + 1) % {0} == 0 || row + i + 1 == rows)", kSingleBlock));
  Line(4,
       fmt::format("for (long ended = (row + i) / {0} * {0}; ended <= row + i; ++ended) {{", kSingleBlock));
  each_term("ended", fmt::format("{0} = {0} + chains{1}[{2}]; chains{1}[{2}] = 0.0;", PayloadOf(r, place), r,
                                 place));
  Line(4, "}");
  Line(3, "}");
}

// t(X) %*% Y: row after row, since rows that have entries in one column add to the same sums.
void TilePrinter::PrintAddEntries(const Step& step) {
  const auto r = static_cast<size_t>(step.index);
  const TileRoot& root = program_.roots[r];
  const auto [input, value] = EntriesOf(step, step.right);
  if (root.kind == TileRoot::Kind::kFull || root.kind == TileRoot::Kind::kColumns)
    return PrintSumEntries(step, value);
  if (AddsSingles(program_, root)) return PrintAddSingleEntries(step);
  const Cells y = PlaceOf(step.from_right);
  const std::string column = fmt::format("columns{}[e]", input);
  std::string place = fmt::format("{} * {} + c", column, root.k);
  if (root.kind == TileRoot::Kind::kVectors) place = fmt::format("c * {} + {}", root.padded, column);
  if (root.kind == TileRoot::Kind::kLanes)
    place = fmt::format("i % 8 * {} + {} * {} + c", root.n * root.k, column, root.k);
  const std::string sum = PayloadOf(r, place);
  const std::string add = fmt::format("if (x != 0.0) {0} = fma(x, {1}, {0});", sum, y.Load("i", "c"));
  Line(3, "for (int i = 0; i < n; ++i) {");
  Line(4, fmt::format("const long begin = offsets{0}[row + i], end = offsets{0}[row + i + 1];", input));
  if (is_alone_) {
    Line(4, fmt::format("for (long e = begin; e < end; ++e) {{ const double x = {};", value));
    Line(5, fmt::format("for (int c = 0; c < {}; ++c) {}", root.k, add));
    Line(4, "}");
  } else {
    Line(4, fmt::format("for (long from = 0; from < (end - begin) * {}; from += {}) {{", root.k,
                        limits_.group_size));
    Line(5,
         fmt::format("const long e = begin + (from + item) / {0}; const int c = (int)((from + item) % {0});",
                     root.k));
    Line(5, fmt::format("const double x = e < end ? {} : 0.0;", value));
    Line(5, add);
    Line(4, "}");
    Barrier();
  }
  Line(3, "}");
}

TilePrinter::EntrySource TilePrinter::EntriesOf(const Step& step, int input) const {
  if (input >= 0) return {input, ValueAt(input)};
  return {program_.fused.driver, EntryOf(step.from)};
}

std::string TilePrinter::EntryOf(const TileRef& ref) const {
  if (ref.kind == TileRef::Kind::kDriver) return ValueAt(program_.fused.driver);
  if (ref.kind == TileRef::Kind::kPattern) return fmt::format("pattern{}[e]", ref.index);
  return fmt::format("{}out{}[e]", program_.single ? "(double)" : "", ref.index);
}

std::string TilePrinter::SetEntry(const TileRef& ref, const std::string& value) const {
  if (ref.kind == TileRef::Kind::kPattern) return fmt::format("pattern{}[e] = {};", ref.index, value);
  return fmt::format("out{}[e] = {};", ref.index,
                     program_.single ? fmt::format("convert_float_rte({})", value) : value);
}

// Each entry `e` of the tile, one behind the other.
void TilePrinter::BeginEachEntry() {
  const int driver = program_.fused.driver;
  Line(3, fmt::format("{{ const long begin = offsets{0}[row], end = offsets{0}[row + n];", driver));
  if (is_alone_) return Line(3, "for (long e = begin; e < end; ++e) { {");
  Line(3,
       fmt::format(
           "for (long from = begin; from < end; from += {}) {{ const long e = from + item; if (e < end) {{",
           limits_.group_size));
}

// `first` and `last`: the rows of all work-items of the round.
void TilePrinter::BeginCellsByEntries(int64_t k) {
  Line(3, EachTogether("cell", fmt::format("n * {}", k)));
  Line(4, fmt::format("const int w = cell / {}, c = cell % {}, is_mine_row = w < n;", k, k));
  Line(4, fmt::format("const int first = from / {0}, last = min((from + {1}) / {0} + 1, n);", k,
                      limits_.group_size));
}

// The entries `e` of row `i` of the tile, row after row.
void TilePrinter::BeginEntriesByRow() {
  const int driver = program_.fused.driver;
  Line(3, "for (int i = 0; i < n; ++i) {");
  Line(3, fmt::format("const long begin = offsets{0}[row + i], end = offsets{0}[row + i + 1];", driver));
  if (is_alone_) return Line(3, "for (long e = begin; e < end; ++e) { {");
  Line(3,
       fmt::format(
           "for (long from = begin; from < end; from += {}) {{ const long e = from + item; if (e < end) {{",
           limits_.group_size));
}

void TilePrinter::PrintRegionOfEntries(const Step& step) {
  const Region& region = program_.regions[static_cast<size_t>(step.index)];
  BeginEachEntry();
  printed::Printer printer("v", "        ");
  std::vector<std::string> values;
  const auto value = [&](int node) { return node < 0 ? std::string() : values[static_cast<size_t>(node)]; };
  for (const RegionNode& node : region.nodes) {
    if (node.op != RegionOp::kInput) {
      values.push_back(printed::PrintNode(node, value(node.a), value(node.b), value(node.c)));
      continue;
    }
    const RegionOperand& operand = step.operands[static_cast<size_t>(node.input)];
    std::string loaded = printer.Define("double", operand.from == RegionOperand::From::kTile
                                                      ? EntryOf(operand.tile)
                                                      : fmt::format("s{}", operand.index));
    if (node.drops_negative_zero) loaded = printer.Define("double", loaded + " + 0.0");
    values.push_back(std::move(loaded));
  }
  for (size_t o = 0; o < step.outputs.size(); ++o)
    printer.Line(SetEntry(step.outputs[o], values[static_cast<size_t>(region.outputs[o].node)]));
  text_ += printer.TakeText();
  Line(3, "} } }");
}

// A search that halves the row's entries, with as many rounds for every work-item.
std::string TilePrinter::PrintFind(int input) {
  const int64_t columns = InfoOfInput(input).shape.columns;
  Line(4, fmt::format("long low{0} = offsets{0}[row + i], high{0} = offsets{0}[row + i + 1];", input));
  Line(4, fmt::format("const long last{0} = high{0};", input));
  Line(4, fmt::format("for (int round = 0; round < {}; ++round) {{",
                      std::bit_width(static_cast<uint64_t>(columns))));
  Line(5, fmt::format("const long middle = (low{0} + high{0}) / 2; const int is_open = low{0} < high{0};",
                      input));
  Line(5, fmt::format("const int is_below = is_open && columns{}[middle] < columns{}[e];", input,
                      program_.fused.driver));
  Line(5, fmt::format("low{0} = is_below ? middle + 1 : low{0};", input));
  Line(5, fmt::format("high{0} = is_open && !is_below ? middle : high{0};", input));
  Line(4, "}");
  Line(4, fmt::format("double found{0} = 0.0;", input));
  Line(4, fmt::format("if (low{0} < last{0} && columns{0}[low{0}] == columns{1}[e])", input,
                      program_.fused.driver));
  Line(5, fmt::format("found{0} = values{0}[low{0}];", input));
  return fmt::format("found{}", input);
}

// The driver's entries stay; in those that another input lacks its cells are 0, and so is all that leaves.
void TilePrinter::PrintIntersect(const Step& step) {
  BeginEntriesByRow();
  Line(4, SetEntry(step.outputs[0], ValueAt(program_.fused.driver)));
  for (size_t k = 0; k < step.inputs.size(); ++k)
    Line(4, SetEntry(step.outputs[k + 1], PrintFind(step.inputs[k])));
  Line(3, "} } }");
}

void TilePrinter::PrintStepOfEntries(const Step& step) {
  const int driver = program_.fused.driver;
  const std::string column = fmt::format("columns{}[e]", driver);
  const auto set = [&](const std::string& value) { Line(4, SetEntry(step.to, value)); };
  switch (step.kind) {
    case Step::Kind::kRound:
      BeginEachEntry();
      set(fmt::format("convert_float_rte({})", EntryOf(step.to)));
      break;
    case Step::Kind::kCopy:
      BeginEachEntry();
      set(EntryOf(step.from));
      break;
    case Step::Kind::kGatherRow:
      BeginEachEntry();
      set(WholeOf(step.index).Load("0", column));
      break;
    case Step::Kind::kGatherColumn:
      BeginEntriesByRow();
      set(PlaceOf(step.from).Load("i", "0"));
      break;
    case Step::Kind::kGatherCells:
      BeginEntriesByRow();
      set(InfoOfInput(step.index).format == Format::kSparse
              ? PrintFind(step.index)
              : PlaceOf({TileRef::Kind::kInput, step.index, 0}).Load("i", column));
      break;
    default: {  // kSample: eight lanes over the columns of U and V, and L.
      const Cells u = PlaceOf({TileRef::Kind::kInput, step.index, 0}), v = WholeOf(step.right);
      BeginEntriesByRow();
      Line(4, "double8 acc = (double8)(0.0);");
      const int64_t whole = u.stride / kLanes * kLanes;
      const auto add = [&](const Loader& load) {
        Line(5, fmt::format("acc = fma({}, {}, acc);", load.Row(u, "i", "0.0"), load.Row(v, column, "0.0")));
      };
      Line(4, fmt::format("for (int j = 0; j < {}; j += 8) {{", whole));
      add(Loader::OfEight("j", kLanes));
      Line(4, "}");
      if (whole < u.stride) add(Loader::OfEight(std::to_string(whole), u.stride - whole));
      set(printed::SumOfLanes("acc.s{}"));
    }
  }
  Line(3, "} } }");
}

// Sums of all entries, and of those of each column.
void TilePrinter::PrintSumEntries(const Step& step, const std::string& value) {
  const auto r = static_cast<size_t>(step.index);
  const TileRoot& root = program_.roots[r];
  const int driver = program_.fused.driver;
  const bool full = root.kind == TileRoot::Kind::kFull;
  const std::string column = fmt::format("columns{}[e]", driver);
  if (is_alone_ || !full) {
    std::string place = column;
    if (full && ChunksOfRow(root) > 1)
      place = PlaceInChunks(column);
    else if (full)
      place = root.n % kLanes == 0 ? fmt::format("{} & 7", column)
                                   : fmt::format("(int)(((long)i * {} + {}) & 7)", root.n, column);
    else if (root.n <= kLanes)
      place = fmt::format("i % 8 * {} + {}", root.n, column);
    const std::string sum = PayloadOf(r, place);
    BeginEntriesByRow();
    Line(4, fmt::format("{0} = {0} + {1};", sum, value));
    Line(3, "} }");
    // Rows that have entries in one column add to the same sums.
    Barrier();
    return Line(3, "}");
  }
  if (ChunksOfRow(root) > 1) {  // Tiles are single rows.
    Line(3, fmt::format("for (long e = offsets{0}[row]; e < offsets{0}[row + 1]; ++e)", driver));
    return Line(4, fmt::format("if ({0} % {1} == item) {2} = {2} + {3};", column, kLanes,
                               PayloadOf(r, PlaceInChunks(column)), value));
  }
  Line(3, "{ const int lane = item % 8;");
  Line(3, fmt::format("double acc = item < 8 ? {} : 0.0;", PayloadOf(r, "lane")));
  Line(3, "for (int i = 0; i < n; ++i) {");
  Line(4, fmt::format("const long begin = offsets{0}[row + i], end = offsets{0}[row + i + 1];", driver));
  Line(4,
       fmt::format(
           "for (long e = begin; e < end; ++e) if ((int)(((long)i * {} + {}) & 7) == lane) acc = acc + {};",
           root.n, column, value));
  Line(3, "}");
  Line(3, fmt::format("if (item < 8) {} = acc; }}", PayloadOf(r, "lane")));
}

}  // namespace heddle::ops
