// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/fused/run/tile_steps.h"
#include "ops/product/matmul.h"
#include "ops/product/matmul_gemm.h"
#include "ops/simd/cellwise/elementwise.h"
#include "ops/simd/product/single_rows.h"

// X %*% B and t(X) %*% Y of a tile in floats (docs/numerics.md, section 9).
namespace heddle::ops {

// Rows of a tile as floats: an input's where they are, those of a buffer, which are floats too, in `room`.
TileSteps::SingleRows TileSteps::SinglesOf(TileScratch& scratch, const TileRef& ref, int64_t row,
                                           int64_t rows, int64_t columns, std::vector<float>& room) const {
  const Place place = Locate(scratch, ref, row);
  if (ref.kind == TileRef::Kind::kInput) return {reinterpret_cast<const float*>(place.cells), place.stride};
  room.resize(static_cast<size_t>(std::max<int64_t>(rows * columns, 1)));
  for (int64_t i = 0; i < rows; ++i)
    SelectedElementwiseKernels().narrow(place.cells + i * place.stride, room.data() + i * columns, columns);
  return {room.data(), columns};
}

// Left as sums in doubles, which the next step rounds.
void TileSteps::MultiplySingles(TileScratch& scratch, size_t s, int64_t row, int64_t row_end) const {
  const Step& step = program_.steps[s];
  const int64_t k = step.columns, rows = row_end - row;
  double* out = Locate(scratch, step.to, row).cells;
  const Matrix& right = inputs_.singles[static_cast<size_t>(step.right)];
  if (step.index >= 0) {
    const Matrix& left = inputs_.singles[static_cast<size_t>(step.index)];
    return MultiplySparseRows(left, right, row, row_end, 0, left.columns(), out);
  }
  if (IsByEntry(step.from)) {
    const Entries x = LeftEntries(scratch, step, row, rows);
    std::fill_n(out, rows * k, 0.0);
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t begin = x.offsets[i], count = x.offsets[i + 1] - begin;
      scratch.singles.resize(static_cast<size_t>(std::max<int64_t>(count, 1)));
      SelectedElementwiseKernels().narrow(x.values + begin, scratch.singles.data(), count);
      simd::AddSparseRowOfSingles(scratch.singles.data(), x.columns + begin, count, right.data<float>(), k, k,
                                  out + i * k);
    }
    return;
  }
  const int64_t inner = right.rows();
  const SingleRows left = SinglesOf(scratch, step.from, row, rows, inner, scratch.singles);
  SingleGemm gemm{.m = rows,
                  .n = k,
                  .k = inner,
                  .a = left.cells,
                  .a_row = left.stride,
                  .b = right.data<float>(),
                  .b_row = k,
                  .packed = packed_singles_[s].get(),
                  .c = out,
                  .c_row = k};
  if (step.fetch != Step::Fetch::kNothing) {
    const Place next = Locate(scratch, step.fetched, row_end);
    gemm.prefetched = reinterpret_cast<const float*>(next.cells);
    gemm.prefetched_cells = rows * next.stride;
  }
  Run(gemm);
}

// Chains that the tile leaves open are ended by a later one, or by EndLeaf.
void TileSteps::AddSingles(TileScratch& scratch, const Step& step, int64_t row, int64_t rows,
                           int64_t row_in_leaf, double* out) const {
  const TileRoot& root = program_.roots[static_cast<size_t>(step.index)];
  TransposedSingles& chains =
      scratch.chains.try_emplace(step.index, root.n, root.k, root.symmetric).first->second;
  const SingleRows y = SinglesOf(scratch, step.from_right, row, rows, root.k, scratch.right_singles);
  if (step.right < 0 && !IsByEntry(step.from)) {
    const SingleRows x =
        step.from == step.from_right ? y : SinglesOf(scratch, step.from, row, rows, root.n, scratch.singles);
    return chains.Add(x.cells, x.stride, y.cells, y.stride, rows, row_in_leaf, out);
  }
  Entries entries{};
  if (step.right >= 0) {
    const Matrix& left = inputs_.doubles[static_cast<size_t>(step.right)];
    entries = {left.row_offsets() + row, left.column_indexes(), left.values()};
  } else {
    entries = LeftEntries(scratch, step, row, rows);
  }
  for (int64_t i = 0; i < rows; ++i) {
    chains.BeginRow(row_in_leaf + i, out);
    for (int64_t e = entries.offsets[i]; e < entries.offsets[i + 1]; ++e) {
      const auto x = static_cast<float>(entries.values[e]);
      if (x == 0) continue;  // Counts as absent.
      TransposedSingles::AddCell(x, y.cells + i * y.stride, root.k, chains.ChainsOf(entries.columns[e]));
    }
  }
}

}  // namespace heddle::ops
