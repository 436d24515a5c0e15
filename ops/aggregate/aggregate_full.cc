// SPDX-License-Identifier: Apache-2.0
// sum mean min max prod var sd trace: a leaf is a panel of FullPanelHeight rows (a 65536-column chunk of a
// row, for longer rows), its cells dealt to eight lanes in row-major order (docs/numerics.md, section 3).
#include <algorithm>
#include <utility>
#include <vector>

#include "ops/aggregate/aggregate_codes.h"
#include "ops/aggregate/nodes_of_columns.h"
#include "ops/aggregate/wide_sums.h"
#include "ops/cells/column_pieces.h"
#include "ops/cells/global_places.h"
#include "ops/cells/storage.h"
#include "ops/elementwise/widened_rows.h"
#include "ops/reduction/lane_tree.h"
#include "ops/reduction/reduce_ranges.h"
#include "ops/sparse/gather_cells.h"

namespace heddle::ops {
namespace {

// Where leaf number `leaf` of a whole m x n matrix lies.
struct LeafGrid {
  int64_t rows, columns, height, chunks;
  LeafGrid(int64_t m, int64_t n)
      : rows(m), columns(n), height(FullPanelHeight(m, n)), chunks(CeilDivide(n, kColumnChunk)) {}
  // Whole rows, of what has no order.
  static LeafGrid OfRows(int64_t m, int64_t n) {
    LeafGrid grid(m, 1);
    grid.columns = n;
    return grid;
  }
  int64_t FirstLeafOfRow(int64_t row) const { return CeilDivide(row, height) * chunks; }
  int64_t RowBegin(int64_t leaf) const { return leaf / chunks * height; }
  int64_t RowEnd(int64_t leaf) const { return std::min(rows, RowBegin(leaf) + height); }
  int64_t ColumnBegin(int64_t leaf) const { return leaf % chunks * kColumnChunk; }
  int64_t ColumnEnd(int64_t leaf) const {
    return chunks == 1 ? columns : std::min(columns, ColumnBegin(leaf) + kColumnChunk);
  }
};

// Rows of a leaf within the piece of X at hand, and its columns.
struct Area {
  int64_t row_begin, row_end, column_begin, column_end;
  int64_t Cells() const { return (row_end - row_begin) * (column_end - column_begin); }
};

// Lanes of a CSR leaf. Adding absent cells would change nothing, so they are skipped; false if there is no
// entry at all.
bool SparseSum(const Matrix& x, const Area& area, double* lanes) {
  double s[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  const int64_t* const offsets = x.row_offsets() + area.row_begin;
  const int64_t rows = area.row_end - area.row_begin;
  AddByFlatLanes(offsets, x.column_indexes(), x.values(), rows, x.columns(), 0, s);
  std::copy_n(s, 8, lanes);
  return offsets[0] < offsets[rows];
}

// Extremes have no order: entries in one run, and a zero if some cell is absent.
void SparseExtreme(simd::Fold fold, const Matrix& x, const Area& area, double* lanes) {
  const int64_t first = x.row_offsets()[area.row_begin], entries = x.row_offsets()[area.row_end] - first;
  simd::FoldFlat(fold, x.values() + first, entries, lanes);
  if (entries < area.Cells()) lanes[0] = simd::FoldTwo(fold, lanes[0], 0.0);
}

bool ReduceLeaf(AggregateKind kind, const Matrix& x, const Area& area, double* payload) {
  const simd::Fold fold = FoldOf(kind);
  if (x.IsSparse() && (kind == AggregateKind::kSum || kind == AggregateKind::kMean))
    return SparseSum(x, area, payload);
  if (!IsSpread(kind)) std::fill_n(payload, 8, simd::StartOf(fold));
  if (x.IsSparse() && (kind == AggregateKind::kMinimum || kind == AggregateKind::kMaximum)) {
    SparseExtreme(fold, x, area, payload);
    return true;
  }
  if (!IsSpread(kind) && !x.IsSparse()) {
    EachCells(x, area.row_begin * x.columns() + area.column_begin, area.Cells(),
              [&](const double* cells, int64_t count) {
                simd::FoldFlat(fold, cells, count, payload, PrefetchOf(x));
              });
    return true;
  }
  PanelCells panel(x);
  const double* cells = panel.Get(area.row_begin, area.row_end, area.column_begin, area.column_end);
  if (!IsSpread(kind)) {
    simd::FoldFlat(fold, cells, area.Cells(), payload, PrefetchOf(x));
    return true;
  }
  CellMoments(cells, area.Cells(), PrefetchOf(x), payload);
  return true;
}

// trace(X) is the sum of the m x 1 matrix of its diagonal.
bool TraceLeaf(const Matrix& x, int64_t row_begin, int64_t row_end, int64_t offset, double* lanes) {
  std::fill_n(lanes, 8, 0.0);
  for (int64_t i = row_begin; i < row_end; ++i) {
    const int64_t j = i + offset;
    double cell = 0.0;
    if (!x.IsSparse()) {
      cell = x.data()[i * x.columns() + j];
    } else if (const EntryRange range = EntriesOf(x, i, j, j + 1); range.begin < range.end) {
      cell = x.values()[range.begin];
    }
    lanes[(i - row_begin) & 7] += cell;
  }
  return true;
}

// Columns one by one, the lanes of a row being those of any row as many eights further on.
void FoldColumnsOf(const CodedColumns& columns, AggregateKind kind, int64_t n, int64_t begin, int64_t end,
                   int classes, double* lanes) {
  std::vector<double> totals(static_cast<size_t>(classes * n));
  columns.Fold(begin, end, classes, totals.data());
  for (int64_t at = 0; at < classes * n; ++at)
    lanes[at & 7] = simd::FoldTwo(FoldOf(kind), lanes[at & 7], totals[static_cast<size_t>(at)]);
}

// Of a compressed matrix of at most one column chunk.
Result<Matrix> PartialOfCodes(const KernelCall& call, AggregateKind kind, const LeafGrid& grid,
                              Reduction reduction) {
  const Matrix& x = call.inputs[0]->matrix();
  const RowSpan span = SpanOf(call);
  const int64_t n = x.columns(), first_leaf = grid.FirstLeafOfRow(span.begin),
                last_leaf = grid.FirstLeafOfRow(span.end);
  const simd::Fold fold = FoldOf(kind);
  if (FoldsInAnyOrder(*FindAggregate(call.node.op), x)) {
    const CodedColumns columns(kind, x);
    reduction.leaf_cells = std::max<int64_t>(1, grid.height * n / CodesOfCell(kind));
    return ReduceNodes(reduction, first_leaf, last_leaf, [&](int) -> NodeFunction {
      return [&](int64_t first, int64_t last, double* payload) {
        std::fill_n(payload, 8, simd::StartOf(fold));
        if (!IsCancelled(reduction.cancelled))
          FoldColumnsOf(columns, kind, n, grid.RowBegin(first) - span.begin,
                        grid.RowEnd(last - 1) - span.begin,
                        static_cast<int>(std::min<int64_t>(grid.height, 8)), payload);
      };
    });
  }
  const DecodedCells cells(x);
  reduction.leaf_cells = grid.height * n;
  return ReduceLeaves(reduction, first_leaf, last_leaf, [&](int64_t leaf, double* payload) {
    std::fill_n(payload, 8, simd::StartOf(fold));
    cells.ForTiles(
        grid.RowBegin(leaf) - span.begin, grid.RowEnd(leaf) - span.begin,
        [&](const double* rows, int64_t count) { simd::FoldFlat(fold, rows, count * n, payload); });
    return true;
  });
}

Result<Matrix> Partial(const KernelCall& call, AggregateKind kind, const Reduction& reduction) {
  const Matrix& x = call.inputs[0]->matrix();
  const RowSpan span = SpanOf(call);
  if (kind == AggregateKind::kTrace && span.total != x.columns())
    return FailedPrecondition("trace: needs a square matrix, got {}x{}", span.total, x.columns());
  const bool is_extreme = kind == AggregateKind::kMinimum || kind == AggregateKind::kMaximum;
  const LeafGrid grid = x.IsSparse() && is_extreme
                            ? LeafGrid::OfRows(span.total, x.columns())
                            : LeafGrid(span.total, kind == AggregateKind::kTrace ? 1 : x.columns());
  Reduction sized = reduction;
  sized.leaf_cells = grid.height * std::min(grid.columns, kColumnChunk);
  if (span.begin == span.end || grid.columns == 0) return ReduceLeaves(sized, 0, 0, {});
  if (x.IsCompressed()) return PartialOfCodes(call, kind, grid, reduction);
  const int64_t begin = grid.FirstLeafOfRow(span.begin), end = grid.FirstLeafOfRow(span.end);
  if (x.IsSparse() && grid.chunks > 1 && FoldOf(kind) == simd::Fold::kAdd && !IsSpread(kind))
    return ReduceNodes(sized, begin, end, [&](int) -> NodeFunction {
      return [&](int64_t first, int64_t last, double* payload) {
        simd::LaneTree tree;
        if (!IsCancelled(reduction.cancelled))
          simd::AddLongRows(x.row_offsets(), x.column_indexes(), x.values(), span.begin, grid.chunks, first,
                            last, tree);
        tree.Finish(payload);
      };
    });
  return ReduceLeaves(sized, begin, end, [&](int64_t leaf, double* payload) {
    const Area area{grid.RowBegin(leaf) - span.begin, grid.RowEnd(leaf) - span.begin, grid.ColumnBegin(leaf),
                    grid.ColumnEnd(leaf)};
    if (kind == AggregateKind::kTrace) return TraceLeaf(x, area.row_begin, area.row_end, span.begin, payload);
    return ReduceLeaf(kind, x, area, payload);
  });
}

// A chunk of columns of one row of a CSR matrix. A column of the chunk is in the lane that it has among all
// columns: chunks begin at multiples of eight.
bool ReduceChunkOfEntries(AggregateKind kind, const Matrix& x, const Area& area, double* lanes) {
  const EntryRange range = EntriesOf(x, area.row_begin, area.column_begin, area.column_end);
  if (kind == AggregateKind::kSum || kind == AggregateKind::kMean) {
    std::fill_n(lanes, 8, 0.0);
    for (int64_t e = range.begin; e < range.end; ++e) lanes[x.column_indexes()[e] & 7] += x.values()[e];
    return range.begin < range.end;
  }
  const simd::Fold fold = FoldOf(kind);
  std::fill_n(lanes, 8, simd::StartOf(fold));
  simd::FoldFlat(fold, x.values() + range.begin, range.end - range.begin, lanes);
  if (range.end - range.begin < area.Cells()) lanes[0] = simd::FoldTwo(fold, lanes[0], 0.0);
  return true;
}

// Rows of the diagonal as those of a column.
Result<Matrix> DiagonalRows(const Matrix& x, int64_t begin, int64_t end, int64_t offset) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix diagonal, Matrix::Dense(end - begin, 1));
  for (int64_t i = begin; i < end; ++i) diagonal.mutable_data()[i - begin] = x.At(i, i + offset);
  return diagonal;
}

SumsOfMatrix SumsOf(AggregateKind kind, const Shape& shape) {
  const bool trace = kind == AggregateKind::kTrace;
  return {.kind = kind, .rows = shape.rows, .columns = trace ? 1 : shape.columns};
}

// Rows [begin, end) of the whole matrix, all of them here.
Result<Matrix> RowsToAddUp(const KernelCall& call, AggregateKind kind, int64_t begin, int64_t end) {
  const Matrix& x = call.inputs[0]->matrix();
  const int64_t here = SpanOf(call).begin;
  if (kind == AggregateKind::kTrace) return DiagonalRows(x, begin - here, end - here, here);
  return x.IsCompressed() ? AsDense(x.Rows(begin - here, end - here)) : x.Rows(begin - here, end - here);
}

Reduction ReductionOf(const KernelContext& context, AggregateKind kind) {
  return {.join = JoinOf(kind), .width = IsSpread(kind) ? 3 : 8, .cancelled = context.cancelled};
}

}  // namespace

void CellMoments(const double* cells, int64_t count, const simd::Prefetch& prefetch, double* payload) {
  double lanes[8] = {0, 0, 0, 0, 0, 0, 0, 0}, squares[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  simd::FoldFlat(simd::Fold::kAdd, cells, count, lanes, prefetch);
  const double mean = simd::FoldLanes(simd::Fold::kAdd, lanes) / static_cast<double>(count);
  simd::DeviateFlat(cells, count, mean, squares);
  payload[0] = static_cast<double>(count);
  payload[1] = mean;
  payload[2] = simd::FoldLanes(simd::Fold::kAdd, squares);
}

Result<Matrix> NodesOfColumns(const Matrix& x, AggregateKind kind, const Shape& whole, int64_t first_column,
                              const KernelContext& context) {
  const LeafGrid grid(whole.rows, whole.columns);
  HEDDLE_CHECK(grid.height == 1 && (x.columns() == 0 || first_column % kColumnChunk == 0),
               "leaves are chunks of rows");
  Reduction reduction = ReductionOf(context, kind);
  reduction.leaf_cells = kColumnChunk;
  const int64_t first_chunk = first_column / kColumnChunk;
  HEDDLE_ASSIGN_OR_RETURN(
      Matrix nodes, ReduceRanges(reduction, x.rows(), grid.chunks, first_chunk,
                                 CeilDivide(x.columns(), kColumnChunk), [&](int64_t leaf, double* payload) {
                                   const int64_t i = leaf / grid.chunks,
                                                 chunk = leaf % grid.chunks - first_chunk;
                                   const Area area{i, i + 1, chunk * kColumnChunk,
                                                   std::min(x.columns(), (chunk + 1) * kColumnChunk)};
                                   const bool by_entries =
                                       x.IsSparse() && !IsSpread(kind) && kind != AggregateKind::kProduct;
                                   return by_entries ? ReduceChunkOfEntries(kind, x, area, payload)
                                                     : ReduceLeaf(kind, x, area, payload);
                                 }));
  if (!AddsUp(kind)) return nodes;
  SumsOfMatrix sums = SumsOf(kind, whole);
  sums.first_column = first_column;
  const RowsOfMatrix rows_of = [&](int64_t begin, int64_t end) -> Result<Matrix> {
    return x.Rows(begin, end);
  };
  return AddWideNodes(sums, std::move(nodes), rows_of, context.cancelled);
}

bool HasFewPanels(const Shape& whole) {
  return whole.columns <= kColumnChunk && whole.rows <= Granule(whole.rows);
}

namespace {

// The rows of `rank`, [first, second).
std::pair<int64_t, int64_t> RowsOfPanels(const Shape& whole, int32_t rank, int32_t ranks) {
  const LeafGrid grid(whole.rows, whole.columns);
  const auto [first, last] = OwnPlaces(CeilDivide(whole.rows, grid.height), rank, ranks);
  return {std::min(whole.rows, first * grid.height), std::min(whole.rows, last * grid.height)};
}

}  // namespace

void SendPanels(const StageCall& call, const Matrix& columns, const Shape& whole, std::span<Value> outputs) {
  for (int32_t rank = 0; rank < call.ranks(); ++rank) {
    const auto [begin, end] = RowsOfPanels(whole, rank, call.ranks());
    outputs[static_cast<size_t>(rank)] = Value(columns.Rows(begin, end));
  }
}

Result<Matrix> NodesOfPanels(const StageCall& call, AggregateKind kind, const Shape& whole) {
  HEDDLE_ASSIGN_OR_RETURN(const Value joined, JoinColumns(call.Parts(0)));
  const Matrix& x = joined.matrix();
  const LeafGrid grid(whole.rows, whole.columns);
  const int64_t first_row = RowsOfPanels(whole, call.rank, call.ranks()).first;
  Reduction reduction = ReductionOf(call.context, kind);
  reduction.leaf_cells = grid.height * std::max<int64_t>(whole.columns, 1);
  const bool is_empty = x.cells() == 0;
  const int64_t leaf_begin = is_empty ? 0 : first_row / grid.height;
  HEDDLE_ASSIGN_OR_RETURN(
      Matrix nodes,
      ReduceLeaves(
          reduction, leaf_begin, leaf_begin + (is_empty ? 0 : CeilDivide(x.rows(), grid.height)),
          [&](int64_t leaf, double* payload) {
            const Area area{grid.RowBegin(leaf) - first_row, grid.RowEnd(leaf) - first_row, 0, whole.columns};
            return ReduceLeaf(kind, x, area, payload);
          }));
  if (!AddsUp(kind)) return nodes;
  const RowsOfMatrix rows_of = [&](int64_t begin, int64_t end) -> Result<Matrix> {
    return x.Rows(begin - first_row, end - first_row);
  };
  return AddWideNodes(SumsOf(kind, whole), std::move(nodes), rows_of, call.context.cancelled);
}

Result<Value> RunFullAggregate(const KernelCall& call, AggregateKind kind) {
  const Reduction reduction = ReductionOf(call.context, kind);
  const Shape shape = call.phase == Phase::kFinish
                          ? call.input_infos[0].shape
                          : Shape{SpanOf(call).total, call.inputs[0]->matrix().columns()};
  const SumsOfMatrix sums = SumsOf(kind, shape);
  HEDDLE_ASSIGN_OR_RETURN(
      Matrix nodes, NodesOf(
                        call, sums, [&] { return Partial(call, kind, reduction); },
                        [&](int64_t begin, int64_t end) { return RowsToAddUp(call, kind, begin, end); }));
  if (call.phase == Phase::kPartial) return Value(std::move(nodes));
  HEDDLE_ASSIGN_OR_RETURN(const RootPayload root, JoinNodes(reduction, nodes));
  double result =
      IsSpread(kind) ? SpreadOf(kind, root[0], root[2]) : simd::FoldLanes(FoldOf(kind), root.data());
  if (kind == AggregateKind::kMean)
    result = result / (static_cast<double>(shape.rows) * static_cast<double>(shape.columns));
  if (AddsUp(kind)) CorrectResults(sums, nodes, &result);
  return Value(Scalar(result));
}

}  // namespace heddle::ops
