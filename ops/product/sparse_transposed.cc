// SPDX-License-Identifier: Apache-2.0
#include "ops/product/sparse_transposed.h"

#include <cmath>
#include <utility>

#include "ops/base/fetch.h"
#include "ops/product/matmul.h"
#include "ops/product/transposed_singles.h"
#include "ops/simd/product/matmul.h"
#include "ops/simd/product/sparse_rows.h"

namespace heddle::ops {
namespace {

// The entries of a tile lie here and there in memory: no prefetcher of the machine finds those of the next
// rows.
constexpr int64_t kRowsPrefetched = 8;
[[gnu::always_inline]] inline void FetchEntries(const Matrix& x, std::pair<int64_t, int64_t> entries) {
  // Lines that begin and end somewhere: one more.
  FetchLines(x.values() + entries.first, entries.second - entries.first + 7);
  FetchLines(x.column_indexes() + entries.first, entries.second - entries.first + 15);
}

// Calls add(j, X[i, j]) for the columns j of X that are rows of the tile: of a CSR X those with entries.
template <typename T, typename Add>
void ForEachCellOfRow(const Matrix& x, const Tiles& tiles, int64_t i, const Tile& tile, const Add& add) {
  if (x.IsSparse()) {
    const auto [first, last] = tiles.x.Of(i, tile.row);
    for (int64_t e = first; e < last; ++e) add(x.column_indexes()[e], x.values<T>()[e]);
  } else {
    for (int64_t j = tile.row; j < tile.row + tile.rows; ++j) add(j, x.data<T>()[i * x.columns() + j]);
  }
}

// chains[c] = fma(x, Y[i, column + c], chains[c]) for the entries [first, last) of row i of a CSR Y.
template <typename T>
void AddEntries(T x, const Matrix& y, const std::pair<int64_t, int64_t>& entries, int64_t column, T* chains) {
  for (int64_t e = entries.first; e < entries.second; ++e) {
    T& chain = chains[y.column_indexes()[e] - column];
    chain = std::fma(x, y.values<T>()[e], chain);
  }
}

}  // namespace

void AddSparseLeaf(const Matrix& x, const Matrix& y, const Tiles& tiles, Rows rows, const Tile& tile,
                   double* payload) {
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    const double* const right = y.IsSparse() ? nullptr : y.data() + i * y.columns() + tile.column;
    if (x.IsSparse() && !y.IsSparse() && tile.columns <= simd::kMostRegisterColumns) {
      const auto [first, last] = tiles.x.Of(i, tile.row);
      if (i + kRowsPrefetched < rows.end) FetchEntries(x, tiles.x.Of(i + kRowsPrefetched, tile.row));
      simd::AddScaledRow(x.values() + first, x.column_indexes() + first, last - first, right, tile.columns,
                         payload - tile.row * tile.columns);
      continue;
    }
    const std::pair<int64_t, int64_t> entries =
        y.IsSparse() ? tiles.y.Of(i, tile.column) : std::pair<int64_t, int64_t>(0, 0);
    ForEachCellOfRow<double>(x, tiles, i, tile, [&](int64_t j, double value) {
      double* const chains = payload + (j - tile.row) * tile.columns;
      if (right == nullptr)
        AddEntries(value, y, entries, tile.column, chains);
      else
        simd::AddScaled(value, right, tile.columns, chains);
    });
  }
}

void AddSparseLeafOfSingles(const Matrix& x, const Matrix& y, const Tiles& tiles, Rows rows, const Tile& tile,
                            double* payload) {
  TransposedSingles chains(tile.rows, tile.columns);
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    chains.BeginRow(i - rows.begin, payload);
    const float* const right = y.IsSparse() ? nullptr : y.data<float>() + i * y.columns() + tile.column;
    const std::pair<int64_t, int64_t> entries =
        y.IsSparse() ? tiles.y.Of(i, tile.column) : std::pair<int64_t, int64_t>(0, 0);
    ForEachCellOfRow<float>(x, tiles, i, tile, [&](int64_t j, float value) {
      float* const own = chains.ChainsOf(j - tile.row);
      if (right == nullptr)
        AddEntries(value, y, entries, tile.column, own);
      else
        TransposedSingles::AddCell(value, right, tile.columns, own);
    });
  }
  chains.End(payload);
}

void AddTermsOfRows(const Matrix& x, const Matrix& y, Rows rows, SparseLeaf* terms) {
  const int64_t* const offsets = x.row_offsets();
  terms->Reserve(offsets[rows.end] - offsets[rows.begin]);
  terms->WeighByRowsOf(y.data() + rows.begin * y.columns());
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    terms->WeighByRow(i - rows.begin);
    terms->AddEntries(x.column_indexes(), x.values(), offsets[i], offsets[i + 1]);
  }
}

int64_t CountProducts(const Matrix& x, const Matrix& y) {
  int64_t count = 0;
  for (int64_t i = 0; i < x.rows(); ++i)
    count += (x.row_offsets()[i + 1] - x.row_offsets()[i]) * (y.row_offsets()[i + 1] - y.row_offsets()[i]);
  return count;
}

void AddProductsOfEntries(const Matrix& x, const Matrix& y, Rows rows, SparseLeaf* terms) {
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    for (int64_t f = y.row_offsets()[i]; f < y.row_offsets()[i + 1]; ++f) {
      terms->Weigh(y.values() + f);
      for (int64_t e = x.row_offsets()[i]; e < x.row_offsets()[i + 1]; ++e)
        terms->Add(x.column_indexes()[e] * y.columns() + y.column_indexes()[f], x.values()[e]);
    }
  }
}

}  // namespace heddle::ops
