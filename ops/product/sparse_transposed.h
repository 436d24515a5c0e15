// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/values/matrix.h"
#include "ops/product/entry_cuts.h"
#include "ops/reduction/reduction_tree.h"
#include "ops/sparse/sparse_leaves.h"

// t(X) %*% Y of more than 8 columns of Y where an operand is CSR: each cell is a chain over the rows of a
// leaf.
namespace heddle::ops {

/// Rows [begin, end) of the pieces at hand.
struct Rows {
  int64_t begin, end;
  int64_t count() const { return end - begin; }
};

/// The tiles of a result, and where the entries of CSR operands pass from one to the next.
struct Tiles {
  Tiling tiling;
  EntryCuts x, y;
  Tiles(const Tiling& t, const Matrix& left, const Matrix& right)
      : tiling(t), x(left, t.tile_rows), y(right, t.tile_columns) {}
};

/// Adds the rows of a leaf to one tile of the result, at least one operand CSR; the cells of the tile are
/// row-major without gaps, zeros before the first row.
void AddSparseLeaf(const Matrix& x, const Matrix& y, const Tiles& tiles, Rows rows, const Tile& tile,
                   double* payload);
/// The same where the chains are of floats (docs/numerics.md, section 9).
void AddSparseLeafOfSingles(const Matrix& x, const Matrix& y, const Tiles& tiles, Rows rows, const Tile& tile,
                            double* payload);

/// The rows of a leaf of CSR X and dense Y, of any number of columns: entry (i, j) of X adds row i of Y to
/// place j.
void AddTermsOfRows(const Matrix& x, const Matrix& y, Rows rows, SparseLeaf* terms);

/// Multiplications of t(X) %*% Y of two CSR matrices.
int64_t CountProducts(const Matrix& x, const Matrix& y);
/// The rows of a leaf of two CSR matrices, entry by entry.
void AddProductsOfEntries(const Matrix& x, const Matrix& y, Rows rows, SparseLeaf* terms);

}  // namespace heddle::ops
