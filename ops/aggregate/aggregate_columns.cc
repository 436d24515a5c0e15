// SPDX-License-Identifier: Apache-2.0
// colSums and its family: a leaf is a panel of ColumnPanelHeight (MomentsPanelHeight) rows. More than 8
// columns: one chain a column, payload column j at place j. At most 8: eight chains a column by row mod 8,
// payload place lane * n + j, joined by L at the root.
#include <algorithm>
#include <vector>

#include "ops/aggregate/aggregate.h"
#include "ops/aggregate/aggregate_codes.h"
#include "ops/aggregate/wide_sums.h"
#include "ops/base/parallel.h"
#include "ops/cells/column_pieces.h"
#include "ops/cells/join_columns.h"
#include "ops/cells/storage.h"
#include "ops/elementwise/single_precision.h"
#include "ops/elementwise/widened_rows.h"
#include "ops/reduction/payload_parts.h"
#include "ops/sparse/sparse_leaves.h"

namespace heddle::ops {
namespace {

constexpr int64_t kNarrow = 8;
// Cells of the result that are closed together.
constexpr int64_t kCloseGrain = 1 << 17;

// Rows [row_begin, row_end) of the piece at hand, one leaf.
struct Panel {
  const Matrix& x;
  int64_t row_begin, row_end;
  int64_t rows() const { return row_end - row_begin; }
  int64_t columns() const { return x.columns(); }
};

// Entries of a CSR panel added to payload; absent cells would change nothing.
bool SparseSums(const Panel& panel, double* payload) {
  const Matrix& x = panel.x;
  const int64_t n = panel.columns(), lanes = n <= kNarrow ? 8 : 1;
  const int64_t* offsets = x.row_offsets();
  const int32_t* columns = x.column_indexes();
  const double* values = x.values();
  if (offsets[panel.row_begin] == offsets[panel.row_end]) return false;
  for (int64_t i = panel.row_begin; i < panel.row_end; ++i) {
    double* lane = payload + (i - panel.row_begin) % lanes * n;
    for (int64_t e = offsets[i], end = offsets[i + 1]; e < end; ++e) lane[columns[e]] += values[e];
  }
  return true;
}

// Extremes have no order, so lanes do not matter: entries, and a zero where a column lacks one.
void SparseExtremes(simd::Fold fold, const Panel& panel, double* payload) {
  const Matrix& x = panel.x;
  std::vector<int32_t> counts(static_cast<size_t>(panel.columns()));
  for (int64_t e = x.row_offsets()[panel.row_begin]; e < x.row_offsets()[panel.row_end]; ++e) {
    const int32_t j = x.column_indexes()[e];
    payload[j] = simd::FoldTwo(fold, payload[j], x.values()[e]);
    ++counts[static_cast<size_t>(j)];
  }
  for (int64_t j = 0; j < panel.columns(); ++j)
    if (counts[static_cast<size_t>(j)] < panel.rows()) payload[j] = simd::FoldTwo(fold, payload[j], 0.0);
}

void DenseFold(simd::Fold fold, const double* cells, const simd::Prefetch& prefetch, int64_t rows, int64_t n,
               double* payload) {
  if (n <= kNarrow)
    simd::FoldNarrow(fold, cells, rows, n, payload, prefetch);
  else
    simd::FoldColumns(fold, cells, rows, n, n, payload, prefetch);
}

// The chain of each column: sums, then sums of squared deviations from the mean.
void ChainMoments(const double* cells, int64_t rows, int64_t n, const simd::Prefetch& prefetch, double* means,
                  double* squares) {
  AlignedArray sums((n + 7) / 8 * 8);
  std::fill_n(sums.data(), (n + 7) / 8 * 8, 0.0);
  simd::FoldColumns(simd::Fold::kAdd, cells, rows, n, n, sums.data(), prefetch);
  for (int64_t j = 0; j < n; ++j) means[j] = sums[j] / static_cast<double>(rows);
  std::fill_n(sums.data(), (n + 7) / 8 * 8, 0.0);
  simd::DeviateColumns(cells, rows, n, means, sums.data());
  std::copy_n(sums.data(), n, squares);
}

// Moments of a CSR panel with more than 8 columns. A column without an entry in it has mean and squares 0;
// the others, zeros between their entries, lie side by side.
void SparseMoments(const Panel& panel, double* payload) {
  const Matrix& x = panel.x;
  const int64_t n = panel.columns(), rows = panel.rows();
  const int64_t begin = x.row_offsets()[panel.row_begin], end = x.row_offsets()[panel.row_end];
  const int32_t* const columns = x.column_indexes();
  payload[0] = static_cast<double>(rows);
  double *means = payload + 1, *squares = payload + 1 + n;
  std::fill_n(means, 2 * n, 0.0);
  std::vector<int32_t> used(columns + begin, columns + end);
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  const auto count = static_cast<int64_t>(used.size());
  if (count == 0) return;
  AlignedArray cells(rows * count);
  std::fill_n(cells.data(), rows * count, 0.0);
  for (int64_t i = panel.row_begin; i < panel.row_end; ++i) {
    double* const row = cells.data() + (i - panel.row_begin) * count;
    auto place = used.begin();
    for (int64_t e = x.row_offsets()[i]; e < x.row_offsets()[i + 1]; ++e) {
      place = std::lower_bound(place, used.end(), columns[e]);
      row[place - used.begin()] = x.values()[e];
    }
  }
  std::vector<double> used_means(used.size()), used_squares(used.size());
  ChainMoments(cells.data(), rows, count, simd::Prefetch(), used_means.data(), used_squares.data());
  for (size_t j = 0; j < used.size(); ++j) {
    means[used[j]] = used_means[j];
    squares[used[j]] = used_squares[j];
  }
}

bool ReducePanel(AggregateKind kind, const Panel& panel, int64_t width, double* payload) {
  if (IsSpread(kind)) {
    // Where most columns have entries, all cells are written out.
    if (panel.x.IsSparse() && panel.columns() > kNarrow &&
        2 * (panel.x.row_offsets()[panel.row_end] - panel.x.row_offsets()[panel.row_begin]) <=
            panel.columns()) {
      SparseMoments(panel, payload);
      return true;
    }
    PanelCells cells(panel.x);
    ColumnMoments(cells.Get(panel.row_begin, panel.row_end, 0, panel.columns()), panel.rows(),
                  panel.columns(), PrefetchOf(panel.x), payload);
    return true;
  }
  const simd::Fold fold = FoldOf(kind);
  FillPayload(payload, width, simd::StartOf(fold));
  if (panel.x.IsSparse() && fold == simd::Fold::kAdd) return SparseSums(panel, payload);
  if (panel.x.IsSparse() && fold != simd::Fold::kMultiply) {
    SparseExtremes(fold, panel, payload);
    return true;
  }
  if (!panel.x.IsSparse()) {
    EachRows(panel.x, panel.row_begin, panel.row_end, 0, panel.columns(),
             [&](const double* cells, int64_t, int64_t, int64_t rows) {
               DenseFold(fold, cells, PrefetchOf(panel.x), rows, panel.columns(), payload);
             });
    return true;
  }
  PanelCells cells(panel.x);
  DenseFold(fold, cells.Get(panel.row_begin, panel.row_end, 0, panel.columns()), PrefetchOf(panel.x),
            panel.rows(), panel.columns(), payload);
  return true;
}

int64_t PayloadWidth(AggregateKind kind, int64_t n) {
  return IsSpread(kind) ? 1 + 2 * n : n <= kNarrow ? 8 * n : (n + 7) / 8 * 8;
}

int64_t LeafHeight(AggregateKind kind, int64_t m, int64_t n) {
  return IsSpread(kind) ? MomentsPanelHeight(m, n) : ColumnPanelHeight(m, n);
}

// The result of a column from the root of the tree: of moments the count and its squares, else a number.
double CellOf(AggregateKind kind, int64_t m, double count, double value) {
  if (IsSpread(kind)) return SpreadOf(kind, count, value);
  return kind == AggregateKind::kMean ? value / static_cast<double>(m) : value;
}

// Of a compressed matrix: columns by their codes, in the lanes of the rows where they have some, or by cells.
Result<Matrix> PartialOfCodes(const KernelCall& call, AggregateKind kind, int64_t height,
                              Reduction reduction) {
  const Matrix& x = call.inputs[0]->matrix();
  const RowSpan span = SpanOf(call);
  const int64_t n = x.columns(), first_leaf = span.begin / height, last_leaf = CeilDivide(span.end, height);
  const simd::Fold fold = FoldOf(kind);
  const auto end_of = [&](int64_t leaf) { return std::min(span.end, leaf * height) - span.begin; };
  if (FoldsInAnyOrder(*FindAggregate(call.node.op), x)) {
    const CodedColumns columns(kind, x);
    reduction.leaf_cells = std::max<int64_t>(1, height * n / CodesOfCell(kind));
    return ReduceNodes(reduction, first_leaf, last_leaf, [&](int) -> NodeFunction {
      return [&](int64_t first, int64_t last, double* payload) {
        FillPayload(payload, reduction.width, simd::StartOf(fold));
        if (!IsCancelled(reduction.cancelled))
          columns.Fold(first * height - span.begin, end_of(last), n <= kNarrow ? 8 : 1, payload);
      };
    });
  }
  const DecodedCells cells(x);
  reduction.leaf_cells = height * n;
  return ReduceLeaves(reduction, first_leaf, last_leaf, [&](int64_t leaf, double* payload) {
    FillPayload(payload, reduction.width, simd::StartOf(fold));
    cells.ForTiles(leaf * height - span.begin, end_of(leaf + 1), [&](const double* rows, int64_t count) {
      DenseFold(fold, rows, simd::Prefetch(), count, n, payload);
    });
    return true;
  });
}

Result<Matrix> Partial(const KernelCall& call, AggregateKind kind, int64_t whole_columns,
                       Reduction reduction) {
  const Matrix& x = call.inputs[0]->matrix();
  const RowSpan span = SpanOf(call);
  const int64_t n = x.columns(), height = LeafHeight(kind, span.total, whole_columns);
  const int64_t begin = span.begin == span.end ? 0 : span.begin / height;
  const int64_t end = span.begin == span.end ? 0 : CeilDivide(span.end, height);
  if (x.IsCompressed() && begin < end) return PartialOfCodes(call, kind, height, reduction);
  const auto panel = [&](int64_t leaf) {
    return Panel{x, leaf * height - span.begin, std::min(span.end, (leaf + 1) * height) - span.begin};
  };
  if (const int64_t tile_columns = ColumnsOfTiles(n, end - begin);
      tile_columns > 0 && !x.IsSparse() && !IsSpread(kind)) {
    const simd::Fold fold = FoldOf(kind);
    return ReduceTiles(reduction, begin, end, Tiling{1, reduction.width, 1, tile_columns},
                       [&](const Tile& tile, int64_t leaf, double* payload) {
                         const Panel rows = panel(leaf);
                         FillPayload(payload, tile.columns, simd::StartOf(fold));
                         const int64_t width = std::min(tile.columns, n - tile.column);
                         EachRows(x, rows.row_begin, rows.row_end, tile.column, width,
                                  [&](const double* cells, int64_t stride, int64_t, int64_t count) {
                                    simd::FoldColumns(fold, cells, count, stride, width, payload);
                                  });
                         return true;
                       });
  }
  if (n > kNarrow && x.IsSparse() && !IsSpread(kind) && FoldOf(kind) == simd::Fold::kAdd &&
      AreSparseLeaves(x.stored(), end - begin, n, 1))
    return ReduceSparseLeaves(
        reduction, 1, begin, end, call.phase == Phase::kWhole, [&](int64_t leaf, SparseLeaf& terms) {
          const Panel rows = panel(leaf);
          const double one = 1.0;
          terms.Weigh(&one);
          terms.AddEntries(x.column_indexes(), x.values(), x.row_offsets()[rows.row_begin],
                           x.row_offsets()[rows.row_end]);
        });
  reduction.leaf_cells = height * std::max<int64_t>(n, 1);
  return ReduceLeaves(reduction, begin, end, [&](int64_t leaf, double* payload) {
    return ReducePanel(kind, panel(leaf), reduction.width, payload);
  });
}

}  // namespace

void ColumnMoments(const double* cells, int64_t rows, int64_t n, const simd::Prefetch& prefetch,
                   double* payload) {
  double *means = payload + 1, *squares = payload + 1 + n;
  payload[0] = static_cast<double>(rows);
  if (n > kNarrow) return ChainMoments(cells, rows, n, prefetch, means, squares);
  // Eight chains a column.
  const int64_t padded = (n * 8 + 7) / 8 * 8;
  AlignedArray sums(padded);
  const auto close = [&](double* out) {
    for (int64_t j = 0; j < n; ++j) {
      double lane[8];
      for (int64_t r = 0; r < 8; ++r) lane[r] = sums[r * n + j];
      out[j] = simd::FoldLanes(simd::Fold::kAdd, lane);
    }
  };
  std::fill_n(sums.data(), padded, 0.0);
  simd::FoldNarrow(simd::Fold::kAdd, cells, rows, n, sums.data(), prefetch);
  close(means);
  for (int64_t j = 0; j < n; ++j) means[j] = means[j] / static_cast<double>(rows);
  std::fill_n(sums.data(), padded, 0.0);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const double d = cells[i * n + j] - means[j];
      sums[i % 8 * n + j] += d * d;
    }
  }
  close(squares);
}

namespace {

// Of a matrix with more than 8 columns of which at most 8 are here: each has one chain all the same, as
// beside columns of zeros.
Result<Value> RunWidenedAggregate(const KernelCall& call, AggregateKind kind, int64_t whole_columns) {
  const Matrix& x = call.inputs[0]->matrix();
  HEDDLE_ASSIGN_OR_RETURN(Matrix zeros, Matrix::Dense(x.rows(), kNarrow + 1 - x.columns(), x.element_type()));
  HEDDLE_ASSIGN_OR_RETURN(Matrix wide, JoinColumns({x, std::move(zeros)}, Format::kDense));
  const Value input(std::move(wide));
  const Value* const inputs[] = {&input};
  KernelCall widened = call;
  widened.inputs = inputs;
  HEDDLE_ASSIGN_OR_RETURN(const Value result, RunColumnAggregate(widened, kind, whole_columns));
  return ColumnsOfValue(result, 0, x.columns());
}

}  // namespace

Result<Value> RunColumnAggregate(const KernelCall& call, AggregateKind kind, int64_t whole_columns) {
  const int64_t n =
      call.phase == Phase::kFinish ? call.input_infos[0].shape.columns : call.inputs[0]->matrix().columns();
  if (whole_columns < 0) whole_columns = n;
  if (n <= kNarrow && whole_columns > kNarrow) return RunWidenedAggregate(call, kind, whole_columns);
  const int64_t m =
      call.phase == Phase::kFinish ? call.input_infos[0].shape.rows : call.inputs[0]->matrix().rows();
  const Reduction reduction{
      .join = JoinOf(kind), .width = PayloadWidth(kind, n), .cancelled = call.context.cancelled};
  const SumsOfMatrix sums{.scope = AggregateScope::kColumn,
                          .kind = kind,
                          .rows = call.phase == Phase::kFinish ? m : SpanOf(call).total,
                          .columns = n,
                          .whole_columns = whole_columns};
  HEDDLE_ASSIGN_OR_RETURN(Matrix nodes,
                          NodesOf(
                              call, sums, [&] { return Partial(call, kind, whole_columns, reduction); },
                              [&](int64_t begin, int64_t end) -> Result<Matrix> {
                                const int64_t here = SpanOf(call).begin;
                                const Matrix rows = call.inputs[0]->matrix().Rows(begin - here, end - here);
                                return rows.IsCompressed() ? AsDense(rows) : rows;
                              }));
  if (call.phase == Phase::kPartial) return Value(std::move(nodes));
  // First what the budget may refuse: without rows there are no nodes that it could have refused before.
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(1, n));
  HEDDLE_ASSIGN_OR_RETURN(const RootPayload root, JoinNodes(reduction, nodes));
  double* out = result.mutable_data();
  const auto cell = [&](int64_t j) {
    if (IsSpread(kind)) return CellOf(kind, m, root[0], root[1 + n + j]);
    if (n > kNarrow) return CellOf(kind, m, 0, root[j]);
    double lanes[8];
    for (int64_t lane = 0; lane < 8; ++lane) lanes[lane] = root[lane * n + j];
    return CellOf(kind, m, 0, simd::FoldLanes(FoldOf(kind), lanes));
  };
  ParallelFor(n, kCloseGrain, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) out[j] = cell(j);
  });
  if (AddsUp(kind)) CorrectResults(sums, nodes, out);
  if (call.phase == Phase::kWhole && HoldsSingles(call.inputs[0]->matrix())) {
    HEDDLE_ASSIGN_OR_RETURN(result, Narrow(result));
  }
  return Value(std::move(result));
}

namespace {

PayloadUnits UnitsOfColumns(const Node& node, std::span<const ValueInfo> inputs, size_t) {
  const Aggregate& aggregate = *FindAggregate(node.op);
  const int64_t n = inputs[0].shape.columns;
  if (aggregate.scope != AggregateScope::kColumn || n == kUnknown || n <= kNarrow) return {};
  return {.count = n, .bytes = 8 * static_cast<double>(PayloadWidth(aggregate.kind, n))};
}

// Some columns, as a column.
Status RunColumnsPart(const StageCall& call, std::span<Value> outputs) {
  const AggregateKind kind = FindAggregate(call.node.op)->kind;
  const auto [m, n] = call.input_infos[0].shape;
  const PayloadLayout layout{.join = JoinOf(kind),
                             .units = n,
                             .shared = IsSpread(kind) ? 1 : 0,
                             .runs = IsSpread(kind) ? 2 : 1,
                             .stride = n,
                             .adds_up = AddsUp(kind),
                             .leaves = CeilDivide(m, LeafHeight(kind, m, n))};
  const auto close = [&](const double* root, const std::function<Result<Matrix>()>& nodes) -> Result<Matrix> {
    const int64_t columns = call.end - call.begin;
    HEDDLE_ASSIGN_OR_RETURN(Matrix part, Matrix::Dense(columns, 1));
    double* const out = part.mutable_data();
    const double* const values = IsSpread(kind) ? root + 1 + columns : root;
    ParallelFor(columns, kCloseGrain, [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j) out[j] = CellOf(kind, m, root[0], values[j]);
    });
    if (!AddsUp(kind) || simd::FindNonFinite(out, 0, columns) == columns) return part;
    HEDDLE_ASSIGN_OR_RETURN(const Matrix list, nodes());
    CorrectResults(
        {.scope = AggregateScope::kColumn, .kind = kind, .rows = m, .columns = columns, .is_part = true},
        list, out);
    return part;
  };
  return RunReductionStage(call, layout, close, outputs);
}

}  // namespace

const StagedForm kColumnAggregateParts = {
    .stages = kReductionStages, .units = UnitsOfColumns, .run = RunColumnsPart};

}  // namespace heddle::ops
