// SPDX-License-Identifier: Apache-2.0
// rowSums and its family: eight lanes over the columns of a row; a row longer than 65536 columns is a tree
// over its 65536-column chunks (docs/numerics.md, section 3). Row by row, so any rows of X give the same rows
// of the result.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/aggregate/aggregate.h"
#include "ops/aggregate/wide_sums.h"
#include "ops/base/parallel.h"
#include "ops/elementwise/single_precision.h"
#include "ops/elementwise/widened_rows.h"
#include "ops/sparse/sparse_vectors.h"

namespace heddle::ops {
namespace {

constexpr int64_t kTaskCells = 1 << 17;

struct Moments {
  double mean, squares;
};

// Of at least one cell. Reads it twice.
Moments MomentsOf(const double* cells, int64_t count, const simd::Prefetch& prefetch) {
  double lanes[8] = {0, 0, 0, 0, 0, 0, 0, 0}, squares[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  simd::FoldFlat(simd::Fold::kAdd, cells, count, lanes, prefetch);
  const double mean = simd::FoldLanes(simd::Fold::kAdd, lanes) / static_cast<double>(count);
  simd::DeviateFlat(cells, count, mean, squares);
  return {mean, simd::FoldLanes(simd::Fold::kAdd, squares)};
}

// One chunk of one row: eight lanes, or (count, mean, squares).
void ReduceChunk(AggregateKind kind, const Matrix& x, PanelCells& panel, int64_t row, int64_t column_begin,
                 int64_t column_end, double* payload) {
  const simd::Fold fold = FoldOf(kind);
  const int64_t count = column_end - column_begin;
  if (!IsSpread(kind)) std::fill_n(payload, 8, simd::StartOf(fold));
  const double* cells = panel.Get(row, row + 1, column_begin, column_end);
  if (!IsSpread(kind)) {
    simd::FoldFlat(fold, cells, count, payload, PrefetchOf(x));
    return;
  }
  const Moments moments = MomentsOf(cells, count, PrefetchOf(x));
  payload[0] = static_cast<double>(count);
  payload[1] = moments.mean;
  payload[2] = moments.squares;
}

void ReduceRows(AggregateKind kind, const Matrix& x, int64_t begin, int64_t end, double* out) {
  const int64_t n = x.columns();
  PayloadStack stack(JoinOf(kind), IsSpread(kind) ? 3 : 8, 48);
  PanelCells panel(x);
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t j = 0; j < n; j += kColumnChunk) {
      ReduceChunk(kind, x, panel, i, j, std::min(n, j + kColumnChunk), stack.Next(j / kColumnChunk));
      stack.Push();
    }
    const double* root = stack.Finish();
    if (IsSpread(kind))
      out[i] = root == nullptr ? SpreadOf(kind, 0, 0) : SpreadOf(kind, root[0], root[2]);
    else
      out[i] = root == nullptr ? simd::StartOf(FoldOf(kind)) : simd::FoldLanes(FoldOf(kind), root);
  }
}

// Minima and maxima, which have no order, of CSR rows; absent cells are zeros.
void SparseExtremes(simd::Fold fold, const Matrix& x, int64_t begin, int64_t end, double* out) {
  const int64_t* offsets = x.row_offsets();
  for (int64_t i = begin; i < end; ++i) {
    double lanes[8];
    std::fill_n(lanes, 8, simd::StartOf(fold));
    const int64_t count = offsets[i + 1] - offsets[i];
    simd::FoldFlat(fold, x.values() + offsets[i], count, lanes);
    if (count < x.columns()) lanes[0] = simd::FoldTwo(fold, lanes[0], 0.0);
    out[i] = simd::FoldLanes(fold, lanes);
  }
}

// The last of the extreme entries, against the last absent cell as a zero.
void SparseIndexes(bool largest, const Matrix& x, int64_t begin, int64_t end, double* out) {
  const int32_t* columns = x.column_indexes();
  for (int64_t i = begin; i < end; ++i) {
    double best = -std::numeric_limits<double>::infinity();
    int64_t place = -1;
    int64_t absent = x.columns() - 1;  // The last column without an entry, found from behind.
    const int64_t first = x.row_offsets()[i], last = x.row_offsets()[i + 1];
    for (int64_t e = last - 1; e >= first && columns[e] == absent; --e) --absent;
    for (int64_t e = first; e < last; ++e) {
      const double cell = largest ? x.values()[e] : -x.values()[e];
      if (cell >= best) {
        best = cell;
        place = columns[e];
      }
    }
    if (absent >= 0 && (best < 0 || place < 0)) place = absent;
    if (absent >= 0 && best == 0) place = std::max(place, absent);
    out[i] = place < 0 ? 1.0 : static_cast<double>(place + 1);
  }
}

void SpreadPlainRows(AggregateKind kind, const double* x, int64_t rows, int64_t stride, int64_t n,
                     double* out, const simd::Prefetch& prefetch) {
  for (int64_t i = 0; i < rows; ++i)
    out[i] = n == 0 ? SpreadOf(kind, 0, 0)
                    : SpreadOf(kind, static_cast<double>(n), MomentsOf(x + i * stride, n, prefetch).squares);
}

// Rows without gaps of at most one chunk; of means the sums.
void FoldDenseRows(AggregateKind kind, const double* x, int64_t rows, int64_t n, double* out,
                   const simd::Prefetch& prefetch) {
  if (kind == AggregateKind::kIndexMax || kind == AggregateKind::kIndexMin)
    simd::IndexOfExtreme(kind == AggregateKind::kIndexMax, x, rows, n, out);
  else if (IsSpread(kind))
    SpreadPlainRows(kind, x, rows, n, n, out, prefetch);
  else
    simd::FoldRows(FoldOf(kind), x, rows, n, n, out, prefetch);
}

void DivideMeans(AggregateKind kind, int64_t n, int64_t rows, double* out) {
  if (kind != AggregateKind::kMean) return;
  for (int64_t i = 0; i < rows; ++i) out[i] = out[i] / static_cast<double>(n);
}

void AggregatePlainRows(AggregateKind kind, const Matrix& x, int64_t begin, int64_t end, double* out) {
  const int64_t n = x.columns();
  const bool is_index = kind == AggregateKind::kIndexMax || kind == AggregateKind::kIndexMin;
  if (is_index && x.IsSparse()) return SparseIndexes(kind == AggregateKind::kIndexMax, x, begin, end, out);
  if (!x.IsSparse() && (n <= kColumnChunk || is_index)) {
    EachRows(x, begin, end, 0, n, [&](const double* cells, int64_t, int64_t row, int64_t rows) {
      FoldDenseRows(kind, cells, rows, n, out + begin + row, PrefetchOf(x));
    });
  } else if (x.IsSparse() && FoldOf(kind) == simd::Fold::kAdd && !IsSpread(kind)) {
    simd::SumSparseRows({x.row_offsets() + begin, x.column_indexes(), x.values(), end - begin}, n,
                        out + begin);
  } else if (x.IsSparse() && (kind == AggregateKind::kMinimum || kind == AggregateKind::kMaximum)) {
    SparseExtremes(FoldOf(kind), x, begin, end, out);
  } else {
    ReduceRows(kind, x, begin, end, out);
  }
  DivideMeans(kind, n, end - begin, out + begin);
}

}  // namespace

void AggregateDenseRows(AggregateKind kind, const double* x, int64_t rows, int64_t n, double* out) {
  FoldDenseRows(kind, x, rows, n, out, simd::Prefetch());
  DivideMeans(kind, n, rows, out);
  if (AddsUp(kind)) CorrectDenseRows(kind, x, rows, n, n, out);
}

void SpreadRows(AggregateKind kind, const double* x, int64_t rows, int64_t stride, int64_t n, double* out,
                const simd::Prefetch& prefetch) {
  SpreadPlainRows(kind, x, rows, stride, n, out, prefetch);
  CorrectDenseRows(kind, x, rows, stride, n, out);
}

void AggregateRows(AggregateKind kind, const Matrix& x, int64_t begin, int64_t end, double* out) {
  // Floats are far from the ends of doubles. Others by so many rows that their results are in the first-level
  // cache when they are looked at.
  constexpr int64_t kRowsTogether = 2048;
  if (!AddsUp(kind) || HoldsSingles(x)) return AggregatePlainRows(kind, x, begin, end, out);
  for (int64_t row = begin; row < end; row += kRowsTogether) {
    const int64_t last = std::min(end, row + kRowsTogether);
    AggregatePlainRows(kind, x, row, last, out);
    CorrectRows(kind, x, row, last, out);
  }
}

Result<Value> RunRowAggregate(const KernelCall& call, AggregateKind kind) {
  const Matrix& x = call.inputs[0]->matrix();
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(x.rows(), 1));
  double* out = result.mutable_data();
  const int64_t row_cells = x.IsSparse() ? x.stored() / std::max<int64_t>(x.rows(), 1) + 1 : x.columns();
  ParallelFor(x.rows(), std::max<int64_t>(1, kTaskCells / std::max<int64_t>(row_cells, 8)),
              [&](int64_t begin, int64_t end) {
                if (!IsCancelled(call.context.cancelled)) AggregateRows(kind, x, begin, end, out);
              });
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  if (HoldsSingles(x)) {
    HEDDLE_ASSIGN_OR_RETURN(result, Narrow(result));
  }
  return Value(std::move(result));
}

}  // namespace heddle::ops
