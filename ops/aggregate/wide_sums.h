// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "core/status.h"
#include "core/values/matrix.h"
#include "ops/aggregate/aggregate.h"
#include "ops/reduction/wide_number.h"

// Sums of finite cells that leave the range of binary64 on their way (docs/numerics.md, section 3). Kernels
// add up doubles; a result that comes out infinite or NaN, of cells which are all finite, is computed once
// more, in the same order, in wide numbers (ops/reduction/wide_number.h). Infinities and NaN never leave a
// sum again, so a finite result needs no second look, and a finite node of the tree holds the right numbers.
namespace heddle::ops {

/// True for the aggregates this is about: sums, means, variances and standard deviations.
constexpr bool AddsUp(AggregateKind kind) {
  return kind == AggregateKind::kSum || kind == AggregateKind::kMean || kind == AggregateKind::kTrace ||
         IsSpread(kind);
}

/// A full or column aggregate of a matrix, as its partial value has it.
struct SumsOfMatrix {
  AggregateScope scope = AggregateScope::kFull;
  AggregateKind kind = AggregateKind::kSum;
  int64_t rows = 0, columns = 0;  ///< Of the whole matrix.
  int64_t offset = 0;             ///< Of its doubles in each payload.
  int64_t first_column = 0;       ///< Of a full aggregate: where the columns begin that RowsOfMatrix gives.
  int64_t whole_columns =
      -1;                ///< Where `columns` are only some of more: the number of all. Panels are theirs.
  bool is_part = false;  ///< The payloads are of some columns of a matrix of more than eight: one lane each.
};

/// Rows [begin, end) of the whole matrix.
using RowsOfMatrix = std::function<Result<Matrix>(int64_t begin, int64_t end)>;

/// Adds rows to a partial value in which sums are infinite or NaN though the cells are finite: for a node
/// with such sums one row with the numbers that are doubles, one with those that are larger (JoinNodes passes
/// over both). `rows` gives the rows of the leaves of the nodes; it may be called from several threads.
Result<Matrix> AddWideNodes(const SumsOfMatrix& sums, Matrix nodes, const RowsOfMatrix& rows,
                            const std::atomic<bool>* cancelled);
/// The nodes of an aggregate in any phase: those that arrived, or those that `partial` makes of the rows that
/// are here, with their wide nodes where sums are added up.
Result<Matrix> NodesOf(const KernelCall& call, const SumsOfMatrix& sums,
                       const std::function<Result<Matrix>()>& partial, const RowsOfMatrix& rows);
/// `results`, one, or one for each column, are those of all `nodes`, as AddWideNodes has left them: replaces
/// the ones that are infinite or NaN where the cells are finite.
void CorrectResults(const SumsOfMatrix& sums, const Matrix& nodes, double* results);

/// The same for a row aggregate of rows [begin, end) of x, that of row i in out[i].
void CorrectRows(AggregateKind kind, const Matrix& x, int64_t begin, int64_t end, double* out);
/// Of dense rows of n columns, that of row i in out[i].
void CorrectDenseRows(AggregateKind kind, const double* x, int64_t rows, int64_t stride, int64_t n,
                      double* out);

/// A full sum in wide numbers from all its nodes, which is `sum` where that is finite or where cells are not.
WideNumber WideSum(const SumsOfMatrix& sums, const Matrix& nodes, double sum);

}  // namespace heddle::ops
