// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "core/values/panels.h"
#include "ops/device/print/tile_printer.h"

// Entries of CSR rows longer than a column chunk: a lane adds up the entries of a chunk, and the chunks are
// joined by the tree of docs/numerics.md, section 2, while a work-item goes through the row. `node` joins
// what is on its left, level by level, when the first entry of a later chunk comes. Chunks without entries
// are zeros, which change no sum.
namespace heddle::ops {
namespace {

// Bits of the number of a chunk.
int LevelsOf(int64_t columns) {
  int levels = 0;
  while ((int64_t{1} << levels) < CeilDivide(columns, kColumnChunk)) ++levels;
  return levels;
}

constexpr int kBitsOfChunk = 16;
static_assert(kColumnChunk == 1 << kBitsOfChunk);

}  // namespace

int64_t TilePrinter::ChunksOfRow(const TileRoot& root) {
  return root.kind == TileRoot::Kind::kFull ? CeilDivide(root.n, kColumnChunk) : 1;
}

std::string TilePrinter::PlaceInChunks(const std::string& column) {
  return fmt::format("({0} >> {1}) * 8 + ({0} & 7)", column, kBitsOfChunk);
}

void TilePrinter::BeginChunks(int64_t columns) {
  Line(4, "int chunk = 0;");
  for (int level = 0; level < LevelsOf(columns); ++level)
    Line(4, fmt::format("{} left{} = 0.0;", is_alone_ ? "double8" : "double", level));
}

// Straight lines: loops stand in no condition that differs between work-items.
void TilePrinter::NextChunk(int input, int64_t columns) {
  Line(5, fmt::format("const int next_chunk = is_mine ? columns{}[e] >> {} : chunk;", input, kBitsOfChunk));
  Line(5, "if (next_chunk != chunk) {");
  Line(6, is_alone_ ? "double8 node = vload8(0, acc);" : "double node = acc;");
  Line(6, "int goes_on = 1;");
  for (int level = 0; level < LevelsOf(columns); ++level) {
    Line(6, fmt::format("if (goes_on && (chunk >> {0}) == (next_chunk >> {0})) {{", level + 1));
    Line(7, fmt::format("left{} = node; goes_on = 0;", level));
    Line(6, "} else if (goes_on) {");
    Line(7, fmt::format("if (chunk >> {0} & 1) node = left{0} + node;", level));
    Line(7, fmt::format("left{} = 0.0;", level));
    Line(6, "}");
  }
  Line(6, is_alone_ ? "vstore8((double8)(0.0), 0, acc);" : "acc = 0.0;");
  Line(6, "chunk = next_chunk;");
  Line(5, "}");
}

void TilePrinter::EndChunks(int64_t columns) {
  Line(4, is_alone_ ? "double8 node = vload8(0, acc);" : "double node = acc;");
  for (int level = 0; level < LevelsOf(columns); ++level)
    Line(4, fmt::format("if (chunk >> {0} & 1) node = left{0} + node;", level));
  Line(4, is_alone_ ? "vstore8(node, 0, acc);" : "acc = node;");
}

void TilePrinter::BeginJoinedLeaves(size_t r) {
  const int64_t rows = JoinedRows(program_, program_.roots[r]);
  Line(2, fmt::format("{} stack{}[{}];", is_alone_ ? "double8" : "double", r,
                      std::bit_width(static_cast<uint64_t>(rows))));
  Line(2, fmt::format("int depth{} = 0;", r));
}

// As PrintJoinedChunks, of the leaves of row after row: a node is complete with its last leaf, or with the
// last one of all.
void TilePrinter::PrintJoinedLeaves(size_t r) {
  const TileRoot& root = program_.roots[r];
  const simd::Fold fold = FoldOf(root.aggregate);
  const int64_t rows = JoinedRows(program_, root), chunks = ChunksOfRow(root);
  const auto join = [&](std::string_view condition) {
    Line(5, fmt::format("for ({}) {{", condition));
    Line(6, fmt::format("double{} left = stack{}[--depth{}];", is_alone_ ? "8" : "", r, r));
    text_ += FoldStatement(6, fold, "left", "node", is_alone_);
    Line(6, "node = left;");
    Line(5, "}");
  };
  Line(3, fmt::format("for (int chunk = 0; chunk < {}; ++chunk) {{", chunks));
  Line(4, fmt::format("const long leaf = row * {} + chunk, done = leaf % {};", chunks, rows));
  Line(4, is_alone_ ? fmt::format("double8 node = vload8(0, &sum{}[chunk * 8]);", r)
                    : fmt::format("double node = sum{}[chunk * 8 + item % 8];", r));
  Line(4, fmt::format("const int is_last = done == {} || leaf + 1 == rows * {};", rows - 1, chunks));
  Line(4, "{");
  join("long left_of = done; left_of & 1; left_of >>= 1");
  join(fmt::format("; is_last && depth{} > 0;", r));
  Line(4, "}");
  Line(4, fmt::format("if (!is_last) stack{0}[depth{0}++] = node;", r));
  Line(4, is_alone_
              ? fmt::format("if (is_last) vstore8(node, 0, &root{}[leaf / {} * 8]);", r, rows)
              : fmt::format("if (is_last && item < 8) root{}[leaf / {} * 8 + item] = node;", r, rows));
  Line(3, "}");
  Barrier();
}

}  // namespace heddle::ops
