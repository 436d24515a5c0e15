// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate/wide_sums.h"
#include "ops/device/print/tile_printer.h"
#include "ops/product/matmul.h"
#include "ops/simd/product/gemm.h"

// Rows with values at the entries of a CSR driver and one number in all other cells (row_background.h): that
// number is almost always 0, so steps go along the entries where it is 0 in all rows of a tile, and over rows
// written out where it is not, or where the zeros count.
namespace heddle::ops {

bool TilePrinter::SpreadsRows(const Step& step) const {
  if (!IsByEntry(step.from)) return false;
  const bool has_background = step.background.kind != TileRef::Kind::kNone;
  switch (step.kind) {
    case Step::Kind::kFoldRows: return has_background || AlwaysSpreadsRows(step);
    case Step::Kind::kMultiply: return has_background || step.multiplies_zeros;
    case Step::Kind::kRoot: return has_background;
    default: return false;
  }
}

bool TilePrinter::AlwaysSpreadsRows(const Step& step) const {
  switch (step.kind) {
    case Step::Kind::kFoldRows: return FoldOf(step.aggregate) == simd::Fold::kMultiply;
    // The tiles of a block share its chains.
    case Step::Kind::kRoot: return AddsSingles(program_, program_.roots[static_cast<size_t>(step.index)]);
    default: return false;
  }
}

void TilePrinter::PrintSpread(const TileRef& from, const TileRef& background, const Cells& to) {
  const bool is_zero = background.kind == TileRef::Kind::kNone;
  PrintCells(to.stride, [&](CellIndex& cell) {
    cell.needs_row |= !is_zero;
    const std::string beside = is_zero ? "0.0" : PlaceOf(background).Load("i", "0");
    Line(5, fmt::format("{} = {};", to.At(cell), to.Stored(beside)));
  });
  Barrier();
  BeginEntriesByRow();
  Line(4, fmt::format("{} = {};", to.At("i", fmt::format("columns{}[e]", program_.fused.driver)),
                      to.Stored(EntryOf(from))));
  Line(3, "} } }");
}

void TilePrinter::PrintSpreadStep(const Step& step) {
  const Cells rows = FoldedBuffer(step, 0);
  // Compilers that copy what follows a barrier under a condition (POCL) need minutes for a few of them.
  const bool is_always = AlwaysSpreadsRows(step) || !is_alone_;
  if (!is_always) {
    // Zeros beside what is infinite are terms, too.
    Line(3, fmt::format("{{ int spreads = {};",
                        step.multiplies_zeros ? fmt::format("infinite{}[0]", step.right) : "0"));
    if (step.background.kind != TileRef::Kind::kNone)
      Line(3, fmt::format("for (int i = 0; i < n; ++i) spreads |= {} != 0.0;",
                          PlaceOf(step.background).Load("i", "0")));
    Line(3, "if (spreads) {");
  }
  PrintSpread(step.from, step.background, rows);
  Barrier();
  switch (step.kind) {
    case Step::Kind::kFoldRows:
      PrintFoldRows(rows, rows.stride, PlaceOf(step.to), FoldOf(step.aggregate),
                    step.aggregate == AggregateKind::kMean, AddsUp(step.aggregate) && !program_.single);
      break;
    case Step::Kind::kMultiply: PrintMultiplySpread(step, rows); break;
    default: PrintAddSpread(step, rows);
  }
  if (is_always) return;
  Line(3, "} else {");
  switch (step.kind) {
    case Step::Kind::kFoldRows: PrintFoldEntries(step); break;
    case Step::Kind::kMultiply: PrintMultiplyEntries(step); break;
    default: PrintAddEntries(step);
  }
  Line(3, "} }");
}

// A work-item has a cell of the result. Zeros of a CSR operand count as absent.
void TilePrinter::PrintMultiplySpread(const Step& step, const Cells& from) {
  const Cells to = PlaceOf(step.to), right = WholeOf(step.right);
  const int64_t k = step.columns, inner = from.stride;
  const bool is_single = MultipliesSingles(program_, step);
  const std::string skips = step.multiplies_zeros ? "" : "if (x != 0.0) ";
  Line(3, EachTogether("w", fmt::format("n * {}", k)));
  Line(4, fmt::format("const int i = w / {0}, c = w % {0}, is_mine = i < n;", k));
  if (is_single) {
    Line(4, "double acc = 0.0;");
    Line(4, fmt::format("for (int block = 0; block < {}; block += {}) {{", inner, kSingleBlock));
    Line(5, "float chain = 0.0f;");
    Line(5, fmt::format("for (int j = block; j < min(block + {}, {}); ++j) if (is_mine) {{", kSingleBlock,
                        inner));
    Line(6, fmt::format("const float x = {};", from.LoadSingle("i", "j")));
    Line(6, fmt::format("{}chain = fma(x, {}, chain);", skips, right.LoadSingle("j", "c")));
    Line(5, "}");
    Line(5, "acc = acc + (double)chain;");
    Line(4, "}");
    Line(4, fmt::format("if (is_mine) {} = acc;", to.At("i", "c")));
    return Line(3, "}");
  }
  const int64_t lanes = k <= kFewColumns ? kLanes : 1;
  Line(4, fmt::format("double acc[{0}]; for (int lane = 0; lane < {0}; ++lane) acc[lane] = 0.0;", lanes));
  Line(4, fmt::format("for (int j = 0; j < {}; ++j) if (is_mine) {{", inner));
  Line(5, fmt::format("const double x = {};", from.Load("i", "j")));
  Line(5, fmt::format("{0}acc[j % {1}] = fma(x, {2}, acc[j % {1}]);", skips, lanes, right.Load("j", "c")));
  Line(4, "}");
  const std::string joined = lanes == 1 ? "acc[0]" : printed::SumOfLanes("acc[{}]");
  Line(4, fmt::format("if (is_mine) {} = ({}) + 0.0;", to.At("i", "c"), joined));
  Line(3, "}");
}

// A work-item has a cell of t(X) %*% Y.
void TilePrinter::PrintAddSpread(const Step& step, const Cells& from) {
  const auto r = static_cast<size_t>(step.index);
  const TileRoot& root = program_.roots[r];
  if (root.kind == TileRoot::Kind::kFull || root.kind == TileRoot::Kind::kColumns)
    return PrintFoldIntoRoot(r, from, step.columns);
  const Cells y = PlaceOf(step.from_right);
  Line(3, EachTogether("p", fmt::format("{}", root.n * root.k)));
  Line(4, fmt::format("const int j = p / {0}, c = p % {0}, is_mine = j < {1};", root.k, root.n));
  if (AddsSingles(program_, root)) {
    Line(4, fmt::format("float chain = is_mine ? (float)chains{}[p] : 0.0f;", r));
    Line(4, "for (int i = 0; i < n; ++i) if (is_mine) {");
    Line(5, fmt::format("const float x = {};", from.LoadSingle("i", "j")));
    Line(5, fmt::format("if (x != 0.0f) chain = fma(x, {}, chain);", y.LoadSingle("i", "c")));
    Line(5, fmt::format("if ((row + i + 1) % {0} == 0 || row + i + 1 == rows) {{ {1} = {1} + (double)chain; "
                        "chain = 0.0f; }}",
                        kSingleBlock, PayloadOf(r)));
    Line(4, "}");
    Line(4, fmt::format("if (is_mine) chains{}[p] = (double)chain;", r));
    return Line(3, "}");
  }
  std::string place = "p";
  if (root.kind == TileRoot::Kind::kVectors) place = fmt::format("c * {} + j", root.padded);
  if (root.kind == TileRoot::Kind::kLanes) place = fmt::format("i % 8 * {} + p", root.n * root.k);
  const std::string sum = PayloadOf(r, place);
  Line(4, "for (int i = 0; i < n; ++i) if (is_mine) {");
  Line(5, fmt::format("const double x = {};", from.Load("i", "j")));
  Line(5, fmt::format("if (x != 0.0) {0} = fma(x, {1}, {0});", sum, y.Load("i", "c")));
  Line(4, "}");
  Line(3, "}");
}

void TilePrinter::PrintBackgroundOfResult(const Step& step) {
  printed_.sets_flags = true;
  Line(3, Each("i", "n"));
  Line(4, fmt::format("if ({} != 0.0) flags[1] = 1;", PlaceOf(step.from).Load("i", "0")));
  Line(3, kEndOfEach);
}

}  // namespace heddle::ops
