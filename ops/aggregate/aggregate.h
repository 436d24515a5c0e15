// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "core/values/panels.h"
#include "ops/base/kernel.h"
#include "ops/reduction/reduction_tree.h"
#include "ops/simd/aggregate.h"

// What the files aggregate*.cc share: full aggregates, row aggregates and column aggregates are the same few
// kinds of reduction over different leaves.
namespace heddle::ops {

enum class AggregateKind : uint8_t {
  kSum,
  kMean,
  kMinimum,
  kMaximum,
  kProduct,
  kVariance,
  kDeviation,
  kTrace,
  kIndexMax,
  kIndexMin
};
enum class AggregateScope : uint8_t { kFull, kRow, kColumn };

struct Aggregate {
  AggregateScope scope;
  AggregateKind kind;
};
/// Operator::aggregate; nullptr when `name` is not an aggregate.
const Aggregate* FindAggregate(std::string_view name);

/// Variance and standard deviation, which go by moments and not by a fold.
constexpr bool IsSpread(AggregateKind kind) {
  return kind == AggregateKind::kVariance || kind == AggregateKind::kDeviation;
}
/// The fold of a kind that is one (sum for mean and trace).
simd::Fold FoldOf(AggregateKind kind);
Join JoinOf(AggregateKind kind);
/// squares / (count - 1); 0 for one cell, NaN for none. Its root for kDeviation.
double SpreadOf(AggregateKind kind, double count, double squares);

/// What loops over the cells of x, or over the scratch copies of a CSR x or of floats, fetch.
simd::Prefetch PrefetchOf(const Matrix& x);

/// A run of cells of one panel, row-major without gaps: the matrix's own memory when dense doubles, a scratch
/// copy when CSR or floats.
class PanelCells {
 public:
  explicit PanelCells(const Matrix& matrix) : matrix_(matrix) {}
  /// Rows [row_begin, row_end), columns [column_begin, column_end): all columns, or one row. Valid until the
  /// next call.
  const double* Get(int64_t row_begin, int64_t row_end, int64_t column_begin, int64_t column_end);

 private:
  const Matrix& matrix_;
  int64_t capacity_ = 0;
  AlignedArray scratch_;
};

/// First and one past the last entry of row `row` of a CSR matrix in columns [column_begin, column_end).
struct EntryRange {
  int64_t begin, end;
};
EntryRange EntriesOf(const Matrix& sparse, int64_t row, int64_t column_begin, int64_t column_end);

/// The rows a kReduce phase works on: all of the input, or this rank's.
struct RowSpan {
  int64_t begin, end, total;
};
RowSpan SpanOf(const KernelCall& call);

/// The kernels of the three scopes; call.phase as ops/base/operator.h says.
Result<Value> RunFullAggregate(const KernelCall& call, AggregateKind kind);
Result<Value> RunRowAggregate(const KernelCall& call, AggregateKind kind);
/// `whole_columns`: of the matrix of which the input holds some columns; -1: it holds all.
Result<Value> RunColumnAggregate(const KernelCall& call, AggregateKind kind, int64_t whole_columns = -1);
/// A column aggregate finished in parts.
extern const StagedForm kColumnAggregateParts;
/// A leaf of colVars and colSds: (count, means, squares), 1 + 2n doubles, of rows without gaps.
void ColumnMoments(const double* cells, int64_t rows, int64_t n, const simd::Prefetch& prefetch,
                   double* payload);
/// A leaf of var and sd: (count, mean, squares) of so many cells.
void CellMoments(const double* cells, int64_t count, const simd::Prefetch& prefetch, double* payload);
/// A row aggregate of rows [begin, end) of x, to out[begin] and so on.
void AggregateRows(AggregateKind kind, const Matrix& x, int64_t begin, int64_t end, double* out);
/// A row aggregate of dense rows of n columns without gaps, at most kColumnChunk, to out[0] and so on.
void AggregateDenseRows(AggregateKind kind, const double* x, int64_t rows, int64_t n, double* out);
/// rowVars or rowSds of dense rows of up to kColumnChunk columns, `stride` apart.
void SpreadRows(AggregateKind kind, const double* x, int64_t rows, int64_t stride, int64_t n, double* out,
                const simd::Prefetch& prefetch);

}  // namespace heddle::ops
