// SPDX-License-Identifier: Apache-2.0
// t(V) %*% X and V %*% X with a compressed X: rows of X are weighted by few numbers. A product of two numbers
// has no order, so a cell is the chain that t(X) %*% V would have in the same panels.
#include <algorithm>
#include <memory>
#include <utility>

#include "ops/base/parallel.h"
#include "ops/cells/decode_tile.h"
#include "ops/elementwise/widened_rows.h"
#include "ops/product/compressed_products.h"
#include "ops/product/matmul.h"
#include "ops/reduction/reduction_tasks.h"
#include "ops/simd/aggregate.h"
#include "ops/simd/product/matmul.h"

namespace heddle::ops {
namespace {

struct TileRoom {
  TileDecoder<double>::Cursor cursor;
  AlignedArray cells, sums;
};

// Sums of rows [first, last) in leaves of `height` rows, as tree nodes: place c * n + j of a payload.
Result<Matrix> NodesOfTiles(const Matrix& x, const Matrix& weights, int64_t first, int64_t last,
                            int64_t height, const KernelContext& context) {
  const int64_t n = x.columns(), k = weights.columns();
  if (AddsByPanels(x, k, first, last, height))
    return AddByPanels(x, weights, first, last, height, n,
                       {.width = k * n, .leaf_cells = height * n + 1, .cancelled = context.cancelled});
  const TileDecoder<double> decoder(x);
  const int64_t padded = CeilDivide(n, 8) * 8;
  const int64_t tile = TileDecoder<double>::RowsOfTile(n);
  const Reduction reduction{.width = k * n, .leaf_cells = height * n + 1, .cancelled = context.cancelled};
  const int64_t begin = first == last ? 0 : first / height;
  const int64_t end = first == last ? 0 : CeilDivide(last, height);
  return ReduceTasks(reduction, begin, end, [&]() -> LeafFunction {
    auto room = std::make_shared<TileRoom>();
    room->cells = AlignedArray(tile * n);
    room->sums = AlignedArray(k * padded);
    return [&, room, n, k, padded, tile](int64_t leaf, double* payload) {
      std::fill_n(room->sums.data(), k * padded, 0.0);
      const int64_t stop = std::min(last, (leaf + 1) * height) - first;
      for (int64_t row = leaf * height - first; row < stop; row += tile) {
        const int64_t rows = std::min(tile, stop - row);
        decoder.Decode(&room->cursor, row, row + rows, room->cells.data());
        simd::MultiplyColumns(room->cells.data(), rows, n, n, weights.data() + row * k, k, k,
                              room->sums.data(), padded);
      }
      for (int64_t c = 0; c < k; ++c) std::copy_n(room->sums.data() + c * padded, n, payload + c * n);
      return true;
    };
  });
}

// t(V), where it is not the same in memory.
Result<Matrix> Turned(const Matrix& v) {
  if (v.rows() == 1) return v.Reshaped(v.columns(), 1);
  HEDDLE_ASSIGN_OR_RETURN(Matrix turned, Matrix::Dense(v.columns(), v.rows()));
  for (int64_t i = 0; i < v.rows(); ++i)
    for (int64_t j = 0; j < v.columns(); ++j)
      turned.mutable_data()[j * v.rows() + i] = v.data()[i * v.columns() + j];
  return turned;
}

// The cells of t(V) %*% X of rows [begin, end), row-major.
void SumExactly(const Matrix& x, const Matrix& v, int64_t begin, int64_t end, const KernelContext& context,
                double* cells) {
  const int64_t n = x.columns(), k = v.columns();
  AlignedArray turned(n * k);
  AddWeights(x, v, begin, end, context, turned.data());
  for (int64_t c = 0; c < k; ++c)
    for (int64_t j = 0; j < n; ++j) cells[c * n + j] = turned[j * k + c];
}

Result<std::optional<Value>> OfRoot(const Matrix& nodes, int64_t k, int64_t n) {
  HEDDLE_ASSIGN_OR_RETURN(const RootPayload root, JoinNodes({.width = k * n}, nodes));
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(k, n));
  for (int64_t i = 0; i < k * n; ++i) result.mutable_data()[i] = root[i] + 0.0;
  return std::optional<Value>(std::move(result));
}

// S %*% X, where S is CSR and has so few entries that most rows of X meet none: only the others are decoded,
// into the places that they have in X. Nothing reads the rest, which is never written.
Result<std::optional<Value>> MultiplyFewRows(const KernelCall& call) {
  constexpr int64_t kRowsOfEntry = 64;
  const Matrix &s = call.inputs[0]->matrix(), &x = call.inputs[1]->matrix();
  const int64_t n = x.columns();
  if (s.columns() != x.rows() || IsNarrow(n) || HoldsSingles(s) || HoldsSingles(x) || SkipsZeros(call, 1) ||
      call.node.info.format == Format::kSparse || kRowsOfEntry * s.stored() > x.rows())
    return std::optional<Value>();
  const int32_t* const columns = s.column_indexes();
  std::vector<int64_t> rows(columns + s.row_offsets()[0], columns + s.row_offsets()[s.rows()]);
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  HEDDLE_ASSIGN_OR_RETURN(Matrix cells, Matrix::Dense(x.rows(), n));
  ParallelFor(static_cast<int64_t>(rows.size()), 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = rows[static_cast<size_t>(i)], of_groups = x.first_row() + row;
      DecodeRows(x.groups(), of_groups, of_groups + 1, cells.mutable_data() + row * n);
    }
  });
  const Shape& whole = call.input_infos[0].shape;
  HEDDLE_ASSIGN_OR_RETURN(
      Matrix result,
      MultiplyPart(s, cells,
                   {.rows = whole.IsKnown() ? whole.rows : s.rows(), .inner = s.columns(), .columns = n},
                   call.context));
  return std::optional<Value>(std::move(result));
}

}  // namespace

Result<std::optional<Value>> MultiplyByCompressed(const KernelCall& call) {
  const Matrix &left = call.inputs[0]->matrix(), &x = call.inputs[1]->matrix();
  const bool is_transposed = RoleOf(call.node) == Role::kTransposedProduct;
  if (!is_transposed && left.IsSparse() && x.IsCompressed()) return MultiplyFewRows(call);
  const int64_t n = x.columns(), k = is_transposed ? left.columns() : left.rows();
  if (!left.IsDense() || SkipsZeros(call, 0) || !x.IsCompressed() || IsNarrow(n) || k == 0 ||
      k > kFewColumns || x.rows() != (is_transposed ? left.rows() : left.columns()) || HoldsSingles(x) ||
      HoldsSingles(left) || call.node.info.format == Format::kSparse)
    return std::optional<Value>();
  Matrix weights = left;
  if (!is_transposed) {
    HEDDLE_ASSIGN_OR_RETURN(weights, Turned(left));
  }
  const int64_t rows = is_transposed && call.phase != Phase::kWhole ? call.total_rows : x.rows();
  const int64_t first = is_transposed ? FirstRowOf(call) : 0;
  const int64_t all_rows = call.input_infos[0].shape.IsKnown() ? call.input_infos[0].shape.rows : k;
  const int64_t height = is_transposed                        ? TransposedOrder(call, rows, k, n).height
                         : SplitsInner(all_rows, x.rows(), n) ? Granule(x.rows())
                                                              : x.rows();
  const bool is_exact = AddsFewWeights(x, k, first, first + x.rows(), height) &&
                        AddExactlyWith(UnitsOfGroups(x.groups()), weights, static_cast<double>(rows));
  const bool skips = SkipsZeros(call, 1) && !simd::AllFinite(weights.data(), weights.cells());
  if (!is_exact && (n > kMostTileColumns || skips)) return std::optional<Value>();
  if (is_transposed) {
    const TransposedOrder order(call, rows, k, n);
    if (is_exact) {
      HEDDLE_ASSIGN_OR_RETURN(Value result,
                              ExactSums(call, order, [&](int64_t begin, int64_t end, double* cells) {
                                SumExactly(x, weights, begin, end, call.context, cells);
                              }));
      return std::optional<Value>(std::move(result));
    }
    HEDDLE_ASSIGN_OR_RETURN(Matrix nodes,
                            NodesOfTiles(x, weights, first, first + x.rows(), height, call.context));
    if (call.phase == Phase::kPartial) return std::optional<Value>(std::move(nodes));
    return OfRoot(nodes, k, n);
  }
  if (is_exact) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(k, n));
    SumExactly(x, weights, 0, x.rows(), call.context, result.mutable_data());
    if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
    return std::optional<Value>(std::move(result));
  }
  HEDDLE_ASSIGN_OR_RETURN(const Matrix nodes, NodesOfTiles(x, weights, 0, x.rows(), height, call.context));
  return OfRoot(nodes, k, n);
}

}  // namespace heddle::ops
