// SPDX-License-Identifier: Apache-2.0
// What the steps of a tile add to the payloads of the roots.
#include <algorithm>

#include "core/values/panels.h"
#include "ops/fused/rows/dense_rows.h"
#include "ops/fused/run/tile_steps.h"
#include "ops/simd/product/matmul.h"

namespace heddle::ops {

RowPattern TileScratch::PatternAt(int64_t row) const {
  RowPattern at = pattern;
  at.offsets += row - pattern_row;
  return at;
}

Entries TileScratch::EntriesAt(const double* values, int64_t row) const {
  // Values of a tile begin with its first entry.
  const RowPattern at = PatternAt(row);
  return {at.offsets, at.columns, values - at.offsets[0]};
}

void TileSteps::AddTermsOf(TileScratch& scratch, const Step& step, int64_t row, int64_t rows,
                           SparseLeaf& terms) const {
  const TileRoot& root = program_.roots[0];
  const Place y = root.kind == TileRoot::Kind::kColumns ? Place{} : Locate(scratch, step.from_right, row);
  if (step.right >= 0) {
    const Matrix& x = inputs_.doubles[static_cast<size_t>(step.right)];
    return AddTerms(root, {x.row_offsets() + row, x.column_indexes(), x.values()}, rows, y.cells, y.stride,
                    terms);
  }
  AddTerms(root, LeftEntries(scratch, step, row, rows), rows, y.cells, y.stride, terms);
}

void TileSteps::AddHeldEntries(TileScratch& scratch, int64_t first, int64_t last, double* payload) const {
  for (const Step& step : program_.steps) {
    if (step.kind != Step::Kind::kRoot) continue;
    const TileRoot& root = program_.roots[static_cast<size_t>(step.index)];
    Entries entries =
        scratch.EntriesAt(Locate(scratch, step.from, scratch.held_begin).cells, scratch.held_begin);
    entries.offsets += first - scratch.held_begin;
    AddEntries(root, entries, last - first, 0, payload + root.offset);
  }
}

void TileSteps::AddToTrees(TileScratch& scratch, int64_t row, int64_t row_end, int64_t span_begin,
                           int64_t begin, int64_t end, std::vector<simd::LaneTree>& trees) const {
  const int64_t height = program_.panel_rows, chunks = program_.chunks, first_row = row + span_begin;
  for (const Step& step : program_.steps) {
    if (step.kind != Step::Kind::kRoot) continue;
    const TileRoot& root = program_.roots[static_cast<size_t>(step.index)];
    simd::LaneTree& tree = trees[static_cast<size_t>(step.index)];
    Entries entries = LeftEntries(scratch, step, row, row_end - row);
    if (chunks > 1) {
      simd::AddLongRows(entries.offsets, entries.columns, entries.values, first_row, chunks,
                        std::max(begin, first_row * chunks), std::min(end, (row_end + span_begin) * chunks),
                        tree);
    } else if (SumsByColumn(root) && first_row % height == 0) {
      const int64_t leaves = CeilDivide(row_end - row, height);
      scratch.leaf_sums.assign(static_cast<size_t>(8 * leaves), 0.0);
      AddEntriesOfLeaves(entries, row_end - row, height, scratch.leaf_sums.data());
      for (int64_t i = 0; i < leaves; ++i)
        std::copy_n(scratch.leaf_sums.data() + 8 * i, 8, tree.Leaf(first_row / height + i));
    } else {
      for (int64_t i = first_row, next; i < row_end + span_begin; i = next) {
        next = std::min(row_end + span_begin, i / height * height + height);
        AddEntries(root, entries, next - i, i % height, tree.Leaf(i / height));
        entries.offsets += next - i;
      }
    }
  }
}

// The product of a tile, and the root of the same tile or of the one before it.
void TileSteps::MultiplyAndAdd(TileScratch& scratch, const Step& step, const NarrowRight& right, int64_t row,
                               int64_t rows, double* payload) const {
  const Step& root = program_.steps[static_cast<size_t>(pair_.root)];
  const Place x = Locate(scratch, step.from, row);
  double products[4];
  double* const out = pair_.stores_product ? Locate(scratch, step.to, row).cells : products;
  WithCells(step.from, x, [&]<typename Cell>(const Cell* cells) {
    simd::MultiplyRowsAndColumns(simd::RowsAndColumnsCall<Cell>{
        .n = root.columns,
        .stride = x.stride,
        .x = cells,
        .rows = rows,
        .v = right.cells.data(),
        .out = out,
        .previous = pair_.same_rows ? cells : reinterpret_cast<const Cell*>(scratch.waiting),
        .previous_rows = pair_.same_rows ? rows : scratch.waiting_rows,
        .w = pair_.stores_product ? Locate(scratch, root.from_right, row).cells : products,
        .columns = payload + program_.roots[static_cast<size_t>(root.index)].offset,
        .out_step = pair_.stores_product ? 1 : 0,
        .prefetch = simd::Prefetch(simd::Prefetch::kFar, program_.processor.memory_streams)});
  });
  scratch.waiting_rows = 0;
}

void TileSteps::AddWaiting(TileScratch& scratch, double* payload) const {
  if (scratch.waiting_rows == 0) return;
  const Step& step = program_.steps[static_cast<size_t>(pair_.root)];
  const Place x = Locate(scratch, step.from, 0), y = Locate(scratch, step.from_right, 0);
  const TileRoot& root = program_.roots[static_cast<size_t>(step.index)];
  WithCells(step.from, {const_cast<double*>(scratch.waiting), x.stride}, [&](const auto* cells) {
    simd::MultiplyColumns(cells, scratch.waiting_rows, x.stride, root.n, y.cells, y.stride, 1,
                          payload + root.offset, root.padded);
  });
  scratch.waiting_rows = 0;
}

void TileSteps::SeparateRoot(int r, int64_t offset, Matrix* nodes) const {
  const TileRoot& root = program_.roots[static_cast<size_t>(r)];
  if (root.kind != TileRoot::Kind::kVectors) return;
  for (const Step& step : program_.steps)
    if (step.kind == Step::Kind::kRoot && step.index == r && (step.right >= 0 || IsByEntry(step.from)))
      SeparateCells(nodes, offset, root.padded, root.k);
}

void TileSteps::EndLeaf(TileScratch& scratch, int root, double* payload) const {
  if (IsPaired(root)) AddWaiting(scratch, payload);
  if (const auto open = scratch.chains.find(root); open != scratch.chains.end())
    open->second.End(payload + program_.roots[static_cast<size_t>(root)].offset);
}

double* TileSteps::PayloadOf(const TileScratch& scratch, int r, int64_t row, double* payload) const {
  const TileRoot& root = program_.roots[static_cast<size_t>(r)];
  const ColumnLeaves& leaves = column_leaves_[static_cast<size_t>(r)];
  if (leaves.cells == nullptr) return payload + root.offset;
  const int64_t leaf = (leaves.first_row + row) / root.height - leaves.first_row / root.height;
  return leaves.cells + leaf * root.width + scratch.first_column;
}

void TileSteps::AddToRoot(TileScratch& scratch, const Step& step, int64_t row, int64_t rows,
                          int64_t row_in_panel, double* payload) const {
  const TileRoot& root = program_.roots[static_cast<size_t>(step.index)];
  double* out = PayloadOf(scratch, step.index, row, payload);
  row_in_panel %= root.height;
  if (AddsSingles(program_, root)) return AddSingles(scratch, step, row, rows, row_in_panel, out);
  if (step.right >= 0) {
    const Place y = Locate(scratch, step.from_right, row);
    const Matrix& left = inputs_.doubles[static_cast<size_t>(step.right)];
    return AddSparseProduct(root, {left.row_offsets() + row, left.column_indexes(), left.values()}, rows,
                            y.cells, y.stride, row_in_panel & 7, out);
  }
  if (IsByEntry(step.from)) {
    const Entries entries = LeftEntries(scratch, step, row, rows);
    if (root.kind == TileRoot::Kind::kFull || root.kind == TileRoot::Kind::kColumns)
      return AddEntries(root, entries, rows, row_in_panel, out);
    const Place y = Locate(scratch, step.from_right, row);
    return AddSparseProduct(root, entries, rows, y.cells, y.stride, row_in_panel & 7, out);
  }
  const Place x = Locate(scratch, step.from, row);
  const int64_t columns = ColumnsOf(scratch, step.columns);
  if (root.kind == TileRoot::Kind::kFull || root.kind == TileRoot::Kind::kColumns)
    return EachTileRows(scratch, step.from, row, rows, columns,
                        [&](const double* cells, int64_t stride, int64_t first, int64_t count) {
                          AddRows(root, cells, stride, count, columns, row_in_panel + first, out);
                        });
  const Place y = Locate(scratch, step.from_right, row);
  if (root.kind == TileRoot::Kind::kVectors)
    return WithCells(step.from, x, [&](const auto* cells) {
      simd::MultiplyColumns(cells, rows, x.stride, root.n, y.cells, y.stride, root.k, out, root.padded,
                            ToFetch(step, x, rows));
    });
  const simd::Prefetch prefetch = program_.single ? simd::Prefetch() : ToFetch(step, x, rows);
  EachTileRows(scratch, step.from, row, rows, root.n,
               [&](const double* cells, int64_t stride, int64_t first, int64_t count) {
                 AddProduct(root, cells, stride, y.cells + first * y.stride, y.stride, count, prefetch,
                            (row_in_panel + first) & 7, out);
               });
}

}  // namespace heddle::ops
