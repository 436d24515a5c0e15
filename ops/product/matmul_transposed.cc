// SPDX-License-Identifier: Apache-2.0
// t(X) %*% Y, X m x n, Y m x k: a leaf is a panel of rows, each cell a chain over its rows (docs/numerics.md,
// section 3).
//
// | sizes      | accumulation | rows of a leaf    | place of cell (j, c) in the payload of a leaf |
// |------------|--------------|-------------------|-----------------------------------------------|
// | n * k <= 8 | kLanes       | ColumnPanelHeight | lane * n * k + j * k + c, lane = row mod 8    |
// | k <= 8     | kVectors     | ColumnPanelHeight | c * padded(n) + j; of a CSR X j * k + c       |
// | k > 8      | kCells       | Granule           | j * k + c                                     |
//
// The root of kLanes joins the eight lanes of a cell by L. In lists of t(X) %*% X the payload of a node has
// the cells on and above the diagonal alone, row by row (PackTriangles).
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/base/columns.h"
#include "ops/base/parallel.h"
#include "ops/cells/storage.h"
#include "ops/elementwise/single_precision.h"
#include "ops/elementwise/widened_rows.h"
#include "ops/product/matmul.h"
#include "ops/product/matmul_gemm.h"
#include "ops/product/sparse_transposed.h"
#include "ops/product/transposed_order.h"
#include "ops/reduction/payload_parts.h"
#include "ops/simd/aggregate.h"
#include "ops/simd/cellwise/elementwise.h"
#include "ops/simd/product/few_nonzeros.h"
#include "ops/simd/product/gemm.h"
#include "ops/simd/product/matmul.h"
#include "ops/simd/product/sparse_rows.h"
#include "ops/sparse/sparse_leaves.h"
#include "ops/sparse/sparse_vectors.h"

namespace heddle::ops {
namespace {

// Payloads wider than this are computed in tiles, so that the nodes in flight stay small.
constexpr int64_t kWide = 1 << 16;
constexpr int64_t kTileCells = 1 << 16;
constexpr int64_t kTileSide = 240;
// Cells of a product's root that a thread writes, and multiply-adds that are worth several threads.
constexpr int64_t kRootCells = 1 << 14;
constexpr int64_t kWorthThreads = 1 << 21;
// Of a CSR X, whose rows are read in as many pieces as there are tiles: few, and no piece of few entries.
constexpr int64_t kSparseTileCells = 1 << 17;
constexpr int64_t kLeastEntriesOfTile = 4;
// Cells of a result whose threads keep a tree for each.
constexpr int64_t kMostPlaces = 1 << 22;
using simd::kMostRegisterColumns;

using Product = TransposedOrder;

// The cells of rows of dense Y, at most 8 columns: those of floats widened.
class RightRows {
 public:
  RightRows(const Product& p, const Matrix& y, Rows rows) {
    if (!HoldsSingles(y)) {
      cells_ = y.data() + rows.begin * p.k;
      return;
    }
    widened_ = AlignedArray(rows.count() * p.k);
    SelectedElementwiseKernels().widen(y.data<float>() + rows.begin * p.k, widened_.data(),
                                       rows.count() * p.k);
    cells_ = widened_.data();
  }
  const double* cells() const { return cells_; }

 private:
  AlignedArray widened_;
  const double* cells_;
};

// Dense rows from a multiple of eight on.
void AddLanes(const Product& p, const double* x, const double* y, int64_t rows, double* payload) {
  if (p.k == 1) return simd::MultiplyNarrow(x, rows, p.n, y, payload);
  if (p.n == 1) return simd::MultiplyNarrow(y, rows, p.k, x, payload);
  for (int64_t i = 0; i < rows; ++i) {
    double* const lane = payload + (i & 7) * p.n * p.k;
    for (int64_t j = 0; j < p.n; ++j)
      for (int64_t c = 0; c < p.k; ++c)
        lane[j * p.k + c] = std::fma(x[i * p.n + j], y[i * p.k + c], lane[j * p.k + c]);
  }
}

void LanesLeaf(const Product& p, const Matrix& x, const Matrix& y, Rows rows, double* payload) {
  if (!x.IsSparse()) {
    const RightRows right(p, y, rows);
    return EachRows(x, rows.begin, rows.end, 0, p.n,
                    [&](const double* cells, int64_t, int64_t row, int64_t count) {
                      AddLanes(p, cells, right.cells() + row * p.k, count, payload);
                    });
  }
  const double* right = y.data() + rows.begin * p.k;
  for (int64_t i = rows.begin; i < rows.end; ++i, right += p.k) {
    double* lane = payload + ((i - rows.begin) & 7) * p.n * p.k;
    for (int64_t e = x.row_offsets()[i]; e < x.row_offsets()[i + 1]; ++e) {
      const int64_t j = x.column_indexes()[e];
      for (int64_t c = 0; c < p.k; ++c)
        lane[j * p.k + c] = std::fma(x.values()[e], right[c], lane[j * p.k + c]);
    }
  }
}

// kVectors of a CSR X. In the payloads of leaves the cells that one column of X makes lie side by side;
// SeparateCells moves them apart in the nodes. `whole`: [begin, end) is all leaves.
Result<Matrix> SparseVectors(const Product& p, const Matrix& x, const Matrix& y, int64_t begin, int64_t end,
                             bool whole, const std::function<Rows(int64_t)>& rows_of) {
  const int64_t* offsets = x.row_offsets();
  const int32_t* columns = x.column_indexes();
  const double* values = x.values();
  if (AreSparseLeaves(x.stored(), end - begin, p.n, p.k))
    return ReduceSparseLeaves(p.reduction, p.k, begin, end, whole, [&](int64_t leaf, SparseLeaf& terms) {
      AddTermsOfRows(x, y, rows_of(leaf), &terms);
    });
  HEDDLE_ASSIGN_OR_RETURN(
      Matrix nodes, ReduceLeaves(p.reduction, begin, end, [&](int64_t leaf, double* payload) {
        const Rows rows = rows_of(leaf);
        FillPayload(payload, p.reduction.width, 0.0);
        if (p.k == 1) {
          simd::AddScaledSparseRows({offsets + rows.begin, columns, values, rows.count()},
                                    y.data() + rows.begin, 1, payload);
          return true;
        }
        for (int64_t i = rows.begin; i < rows.end; ++i)
          simd::AddScaledRow(values + offsets[i], columns + offsets[i], offsets[i + 1] - offsets[i],
                             y.data() + i * p.k, p.k, payload);
        return true;
      }));
  SeparateCells(&nodes, 0, p.padded, p.k);
  return nodes;
}

// Columns [first, first + width) of X; payload place c * stride + (j - first).
void DenseVectorsLeaf(const Product& p, const Matrix& x, const Matrix& y, Rows rows, int64_t first,
                      int64_t width, int64_t stride, double* payload) {
  const RightRows right(p, y, rows);
  WithCells(x, [&](const auto* cells) {
    simd::MultiplyColumns(cells + rows.begin * p.n + first, rows.count(), p.n, width, right.cells(), p.k, p.k,
                          payload, stride, width == p.n ? simd::Prefetch::OfProduct(p.k) : simd::Prefetch());
  });
}

void ProductLeafOfSingles(const Product& p, const Matrix& x, const Matrix& y, Rows rows, const Tile& tile,
                          double* payload) {
  Run(SingleGemm{.m = tile.rows,
                 .n = tile.columns,
                 .k = rows.count(),
                 .a = x.data<float>() + rows.begin * p.n + tile.row,
                 .a_row = 1,
                 .a_column = p.n,
                 .b = y.data<float>() + rows.begin * p.k + tile.column,
                 .b_row = p.k,
                 .c = payload,
                 .c_row = tile.columns,
                 .upper_only = p.symmetric && tile.row == tile.column,
                 .b_continues = true});
}

bool ProductLeaf(const Product& p, const Matrix& x, const Matrix& y, const Tiles& tiles, Rows rows,
                 const Tile& tile, double* payload) {
  // Packed products write their cells, but perhaps those below the diagonal.
  const bool upper_only = p.symmetric && tile.row == tile.column;
  const auto clear = [&] { std::fill_n(payload, tile.Cells(), 0.0); };
  if (x.IsSparse() || y.IsSparse()) {
    clear();
    p.single ? AddSparseLeafOfSingles(x, y, tiles, rows, tile, payload)
             : AddSparseLeaf(x, y, tiles, rows, tile, payload);
    return true;
  }
  if (p.symmetric && tile.column + tile.columns <= tile.row) return false;
  if (p.single) {
    if (upper_only) clear();
    ProductLeafOfSingles(p, x, y, rows, tile, payload);
    return true;
  }
  const double *left = x.data() + rows.begin * p.n + tile.row,
               *right = y.data() + rows.begin * p.k + tile.column;
  if (!p.symmetric) {
    clear();
    const int64_t done =
        simd::AddFewNonzeros(left, rows.count(), p.n, tile.rows, right, p.k, tile.columns, payload);
    if (done > 0) {
      Run(Gemm{.m = tile.rows,
               .n = tile.columns,
               .k = rows.count() - done,
               .a = left + done * p.n,
               .a_row = 1,
               .a_column = p.n,
               .b = right + done * p.k,
               .b_row = p.k,
               .c = payload,
               .c_row = tile.columns,
               .accumulate = true});
      return true;
    }
  }
  if (tile.rows <= kFewColumns && tile.columns <= kMostRegisterColumns) {
    clear();
    simd::MultiplyFewColumns(left, rows.count(), p.n, tile.rows, right, p.k, tile.columns, payload);
    return true;
  }
  if (simd::AreFewForTiles(tile.rows, tile.columns)) {
    clear();
    AddProductByColumns(left, rows.count(), p.n, tile.rows, right, p.k, tile.columns, payload,
                        tile.rows == p.n ? simd::Prefetch(simd::Prefetch::kFar) : simd::Prefetch());
    return true;
  }
  if (tile.rows <= 2) {
    AlignedArray columns(tile.columns);
    for (int64_t j = 0; j < tile.rows; ++j) {
      std::fill_n(columns.data(), (tile.columns + 7) / 8 * 8, 0.0);
      simd::MultiplyColumns(right, rows.count(), p.k, tile.columns, left + j, p.n, 1, columns.data(), 0);
      std::copy_n(columns.data(), tile.columns, payload + j * tile.columns);
    }
    return true;
  }
  if (upper_only) clear();
  Run(Gemm{.m = tile.rows,
           .n = tile.columns,
           .k = rows.count(),
           .a = left,
           .a_row = 1,
           .a_column = p.n,
           .b = right,
           .b_row = p.k,
           .c = payload,
           .c_row = tile.columns,
           .upper_only = upper_only,
           .b_continues = true});
  return true;
}

// Whether leaves are too few, or too small, for tasks that keep the threads busy, where the product is work
// for them: then each thread computes some columns.
bool PaysStrips(const Product& p, const Matrix& x, const Matrix& y, int64_t leaves) {
  return p.accumulation == Accumulation::kCells && !x.IsSparse() && !y.IsSparse() && !p.symmetric &&
         p.reduction.width <= kWide && x.rows() * p.n * p.k >= kWorthThreads && ParallelThreads() > 1 &&
         TasksOfLeaves(p.reduction, leaves) < 2 * ParallelThreads();
}

// Tiles of a wide payload: squares for packed products, long strips along the rows of a CSR operand.
Tiling TilingOf(const Product& p, const Matrix& x, const Matrix& y) {
  if (!x.IsSparse() && !y.IsSparse() && p.reduction.width <= kWide)
    return {p.n, p.k, p.n, CeilDivide(CeilDivide(p.k, ParallelThreads()), 16) * 16};
  if (!x.IsSparse() && !y.IsSparse()) return {p.n, p.k, kTileSide, kTileSide};
  if (y.IsSparse()) return {p.n, p.k, std::max<int64_t>(1, kTileCells / p.k), p.k};
  const int64_t entries_of_row = x.stored() / std::max<int64_t>(1, x.rows());
  const int64_t most_blocks = std::max<int64_t>(1, entries_of_row / kLeastEntriesOfTile);
  const int64_t cells = p.n * std::min(p.k, kMostRegisterColumns);
  const int64_t blocks =
      std::min(most_blocks, std::max<int64_t>(cells / kSparseTileCells, 2 * ParallelThreads()));
  const int64_t tile_rows = CeilDivide(p.n, blocks);
  return {p.n, p.k, tile_rows, std::max<int64_t>(32, kTileCells / tile_rows / 32 * 32)};
}

Result<Matrix> Partial(const Product& p, const Matrix& x, const Matrix& y, int64_t row_begin,
                       int64_t row_end) {
  const bool whole = row_end - row_begin == p.m;
  // Two leaves of a block of floats each are one of two blocks, whose sums are added as the leaves are.
  const int64_t height = whole && p.single && p.height == kSingleBlock ? 2 * p.height : p.height;
  const int64_t begin = row_begin == row_end ? 0 : row_begin / height;
  const int64_t end = row_begin == row_end ? 0 : CeilDivide(row_end, height);
  HEDDLE_CHECK(row_begin == row_end || row_begin % Granule(p.m) == 0, "cuts are at granules");
  HEDDLE_CHECK(x.rows() == row_end - row_begin && y.rows() == x.rows(), "both operands hold just these rows");
  // Without cells there is nothing to add up: no nodes, as without rows.
  if (p.IsEmpty()) return ReduceLeaves(p.reduction, 0, 0, [](int64_t, double*) { return false; });
  const auto rows_of = [&](int64_t leaf) {
    return Rows{leaf * height - row_begin, std::min(row_end, (leaf + 1) * height) - row_begin};
  };
  // What few rows add to a large result: the rows of leaves that are touched, not all of their cells.
  if (p.accumulation == Accumulation::kCells && !p.single && x.IsSparse() && !y.IsSparse() &&
      AreSparseLeaves(x.stored(), end - begin, p.n, p.k))
    return ReduceSparseLeaves(
        p.reduction, p.k, begin, end, whole,
        [&](int64_t leaf, SparseLeaf& terms) { AddTermsOfRows(x, y, rows_of(leaf), &terms); },
        PlaceLayout::kCellsTogether);
  if (p.accumulation == Accumulation::kCells && !p.single && x.IsSparse() && y.IsSparse() &&
      p.reduction.width <= kMostPlaces &&
      AreSparseLeaves(CountProducts(x, y), end - begin, p.reduction.width, 1))
    return ReduceSparseLeaves(p.reduction, 1, begin, end, whole, [&](int64_t leaf, SparseLeaf& terms) {
      AddProductsOfEntries(x, y, rows_of(leaf), &terms);
    });
  const bool tiled = p.accumulation == Accumulation::kCells &&
                     (p.reduction.width > kWide || PaysStrips(p, x, y, end - begin));
  const Tiles tiles(tiled ? TilingOf(p, x, y) : Tiling{p.n, p.k, p.n, p.k}, x, y);
  if (tiled)
    return ReduceTiles(p.reduction, begin, end, tiles.tiling,
                       [&](const Tile& tile, int64_t leaf, double* payload) {
                         return ProductLeaf(p, x, y, tiles, rows_of(leaf), tile, payload);
                       });
  if (const int64_t tile_columns = ColumnsOfTiles(p.reduction.width, end - begin);
      tile_columns > 0 && p.accumulation == Accumulation::kVectors && !x.IsSparse())
    return ReduceTiles(p.reduction, begin, end, Tiling{p.k, p.padded, p.k, tile_columns},
                       [&](const Tile& tile, int64_t leaf, double* payload) {
                         std::fill_n(payload, tile.Cells(), 0.0);
                         DenseVectorsLeaf(p, x, y, rows_of(leaf), tile.column,
                                          std::min(tile.columns, p.n - tile.column), tile.columns, payload);
                         return true;
                       });
  if (p.accumulation == Accumulation::kVectors && x.IsSparse())
    return SparseVectors(p, x, y, begin, end, whole, rows_of);
  return ReduceLeaves(p.reduction, begin, end, [&](int64_t leaf, double* payload) {
    const Rows rows = rows_of(leaf);
    if (p.accumulation == Accumulation::kCells)
      return ProductLeaf(p, x, y, tiles, rows, Tile{0, 0, p.n, p.k}, payload);
    std::fill_n(payload, p.reduction.width, 0.0);
    if (p.accumulation == Accumulation::kLanes)
      LanesLeaf(p, x, y, rows, payload);
    else
      DenseVectorsLeaf(p, x, y, rows, 0, p.n, p.padded, payload);
    return true;
  });
}

Result<Matrix> Finish(const Product& p, const Matrix& nodes) {
  // First what the budget may refuse: without rows there are no nodes that it could have refused before.
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(p.n, p.k));
  if (p.IsEmpty()) return result;
  double* out = result.mutable_data();
  if (const int64_t packed = p.n * (p.n + 1) / 2; p.symmetric && nodes.columns() == 2 + packed) {
    Reduction reduction = p.reduction;
    reduction.width = packed;
    HEDDLE_ASSIGN_OR_RETURN(const RootPayload root, JoinNodes(reduction, nodes));
    UnpackTriangle(root.data(), p.n, out);
    ParallelFor(result.cells(), kRootCells, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[i] = out[i] + 0.0;
    });
    return result;
  }
  HEDDLE_ASSIGN_OR_RETURN(const RootPayload root, JoinNodes(p.reduction, nodes));
  const double* cells = root.data();
  const auto cell = [&](int64_t j, int64_t c) {
    if (p.symmetric) return cells[c < j ? c * p.k + j : j * p.k + c];
    double lanes[8];
    for (int64_t lane = 0; lane < 8; ++lane) lanes[lane] = cells[lane * p.n * p.k + j * p.k + c];
    return simd::FoldLanes(simd::Fold::kAdd, lanes);
  };
  ParallelFor(p.n, CeilDivide(kRootCells, std::max<int64_t>(p.k, 1)), [&](int64_t begin, int64_t end) {
    if (p.accumulation == Accumulation::kVectors) {
      for (int64_t c = 0; c < p.k; ++c)
        for (int64_t j = begin; j < end; ++j) out[j * p.k + c] = cells[c * p.padded + j] + 0.0;
      return;
    }
    if (p.accumulation == Accumulation::kCells && !p.symmetric) {
      for (int64_t i = begin * p.k; i < end * p.k; ++i) out[i] = cells[i] + 0.0;
      return;
    }
    for (int64_t j = begin; j < end; ++j)
      for (int64_t c = 0; c < p.k; ++c) out[j * p.k + c] = cell(j, c) + 0.0;
  });
  return result;
}

PayloadLayout LayoutOf(const Product& p) {
  const bool is_vectors = p.accumulation == Accumulation::kVectors;
  return {.units = p.n,
          .runs = is_vectors ? p.k : 1,
          .stride = p.padded,
          .unit_cells = is_vectors ? 1 : p.k,
          .triangle = p.symmetric,
          .leaves = CeilDivide(p.m, p.height)};
}

PayloadUnits UnitsOf(const Node& node, std::span<const ValueInfo> inputs, size_t) {
  const Shape &x = inputs[0].shape, &y = inputs[1].shape;
  if (!x.IsKnown() || !y.IsKnown()) return {};
  const Product p(node, inputs, x.rows, x.columns, y.columns);
  if (p.accumulation == Accumulation::kLanes || p.IsEmpty()) return {};
  const auto cells = static_cast<double>(p.symmetric ? p.n * (p.n + 1) / 2 : p.reduction.width);
  return {.count = p.n, .bytes = 8 * cells, .triangle = p.symmetric, .by_rows = !p.symmetric};
}

// t(X) %*% X by whole rows, which stay where they are finished: twice the cells, and none is sent again.
PayloadUnits RowUnitsOf(const Node& node, std::span<const ValueInfo> inputs, size_t i) {
  PayloadUnits units = UnitsOf(node, inputs, i);
  if (!units.triangle) return {};
  return {.count = units.count, .bytes = 8 * std::pow(static_cast<double>(units.count), 2), .by_rows = true};
}

// Rows of the result; of a symmetric one a column of the cells from the diagonal on.
Status RunPart(const StageCall& call, std::span<Value> outputs) {
  const Shape &x = call.input_infos[0].shape, &y = call.input_infos[1].shape;
  const Product p(call.node, call.input_infos, x.rows, x.columns, y.columns);
  PayloadLayout layout = LayoutOf(p);
  layout.mirrored = call.form.units == RowUnitsOf;
  layout.triangle = p.symmetric && !layout.mirrored;
  const auto close = [&](const double* root, const auto&) -> Result<Matrix> {
    const int64_t rows = call.end - call.begin;
    const int64_t cells = layout.CellsBefore(call.end) - layout.CellsBefore(call.begin);
    HEDDLE_ASSIGN_OR_RETURN(Matrix part,
                            layout.triangle ? Matrix::Dense(cells, 1) : Matrix::Dense(rows, p.k));
    double* const out = part.mutable_data();
    if (p.accumulation == Accumulation::kVectors) {
      for (int64_t c = 0; c < p.k; ++c)
        for (int64_t j = 0; j < rows; ++j) out[j * p.k + c] = root[c * rows + j] + 0.0;
    } else {
      ParallelFor(cells, kRootCells, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) out[i] = root[i] + 0.0;
      });
    }
    return part;
  };
  return RunReductionStage(call, layout, close, outputs);
}

// By columns of X: a row of the result is a column of X times all of Y, which each rank has. Rows stay where
// the columns are.
Status RunColumnsOfX(const StageCall& call, std::span<Value> outputs) {
  const Matrix& x = call.inputs[0]->matrix();
  Matrix y = call.inputs[1]->matrix();
  if (IsNarrow(y.columns())) {
    HEDDLE_ASSIGN_OR_RETURN(y, AsDense(y));
  }
  const Product product(call.WholeCall(), x.rows(), x.columns(), y.columns(), call.rows.Length());
  HEDDLE_ASSIGN_OR_RETURN(Matrix nodes, Partial(product, x, y, 0, x.rows()));
  HEDDLE_ASSIGN_OR_RETURN(Matrix rows, Finish(product, nodes));
  outputs[0] = Value(std::move(rows));
  return OkStatus();
}

bool HasRowsOfColumns(const Node& node, std::span<const ValueInfo> inputs) {
  const ValueInfo &x = inputs[0], &y = inputs[1];
  return node.info.IsSized() && x.IsSized() && y.IsSized() && x.shape.columns * y.shape.columns > 8 &&
         x.element_type == ElementType::kFloat64 && y.element_type == ElementType::kFloat64;
}

constexpr StagedForm kRowsOfSymmetric = {.stages = kReductionStages, .units = RowUnitsOf, .run = RunPart};
constexpr StagedForm kTransposedByColumns = {.stages = kOneStage,
                                             .result = StagedResult::kTurned,
                                             .axis = Axis::kColumns,
                                             .other = &kRowsOfSymmetric,
                                             .applies = HasRowsOfColumns,
                                             .input_use = FirstByRows,
                                             .run = RunColumnsOfX};

}  // namespace

const StagedForm kTransposedProductParts = {
    .stages = kReductionStages, .other = &kTransposedByColumns, .units = UnitsOf, .run = RunPart};

Result<Value> RunTransposedProduct(const KernelCall& call) {
  if (call.phase == Phase::kFinish) {
    const Shape &x = call.input_infos[0].shape, &y = call.input_infos[1].shape;
    HEDDLE_ASSIGN_OR_RETURN(Matrix result,
                            Finish(Product(call, x.rows, x.columns, y.columns), call.inputs[0]->matrix()));
    return Value(std::move(result));
  }
  const Matrix& x = call.inputs[0]->matrix();
  const Matrix& given = call.inputs[1]->matrix();
  if (x.rows() != given.rows())
    return FailedPrecondition("%*%: inner dimensions differ: {}x{} and {}", x.columns(), x.rows(),
                              given.shape());
  Matrix y = given;
  if (IsNarrow(given.columns())) {
    HEDDLE_ASSIGN_OR_RETURN(y, AsDense(given));
  }
  const bool whole = call.phase == Phase::kWhole;
  const Product product(call, whole ? x.rows() : call.total_rows, x.columns(), y.columns());
  HEDDLE_ASSIGN_OR_RETURN(
      Matrix nodes, Partial(product, x, y, whole ? 0 : call.row_begin, whole ? x.rows() : call.row_end));
  if (!whole && product.symmetric) {
    HEDDLE_ASSIGN_OR_RETURN(nodes, PackTriangles(nodes, product.n));
  }
  if (!whole) return Value(std::move(nodes));
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Finish(product, nodes));
  if (HoldsSingles(x)) {
    HEDDLE_ASSIGN_OR_RETURN(result, Narrow(result));
  }
  return Value(std::move(result));
}

}  // namespace heddle::ops
