// SPDX-License-Identifier: Apache-2.0
// cumulative_backward(X, y, dy): the adjoint of X of cumprod, cummin or cummax, whichever attribute "of"
// names; y is its result.
//
// Shapes: all m x n. Format: dense. Order: row by row, products upward, extremes downward.
// Rows: a chain through all rows. Of products rank r computes what the r-th last rank has, so that the last
// rows come first; of extremes a rank tells all the sums that have ended in its rows and belong to earlier
// ones.
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "ops/base/columns.h"
#include "ops/base/parallel.h"
#include "ops/base/stages.h"
#include "ops/catalog.h"

namespace heddle::ops {
namespace {

enum Input { kX, kResult, kAdjoint };

Result<ValueInfo> InferBackward(const InferContext& context) {
  return ValueInfo::OfMatrix(context.inputs[kX].shape);
}

// ---- cumprod: the derivative of y[i] by X[j], j <= i, is y[j-1] times the product of X[j+1:i]. So that of
// X[j] is y[j-1] * s[j] with s[j] = dy[j] + X[j+1] * s[j+1]: right at zeros as well, one pass upward.

// Cells of a column between two looks at whether the kernel is cancelled.
constexpr int64_t kCellsBetweenPolls = 1 << 16;

bool IsTimeToStop(const KernelContext& context, int64_t i) {
  return i % kCellsBetweenPolls == 0 && IsCancelled(context.cancelled);
}

Status CancelledOrOk(const KernelContext& context) {
  return IsCancelled(context.cancelled) ? Cancelled("cancelled") : OkStatus();
}

// What the rows below hand on, for each column: s of the first of them, and its X.
struct Below {
  std::vector<double> sums, x;
};

// s of rows of n columns, and what they hand on; `below` is nullopt behind the last row.
void SumUpward(const KernelContext& context, const Matrix& x, const Matrix& dy, std::optional<Below>* below,
               double* out) {
  const int64_t m = x.rows(), n = x.columns();
  if (m == 0) return;
  std::vector<double> sums(static_cast<size_t>(n));
  ParallelFor(n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      const auto column = static_cast<size_t>(j);
      double sum = *below ? (*below)->sums[column] : 0;
      for (int64_t i = m; i-- > 0;) {
        if (IsTimeToStop(context, m - 1 - i)) return;
        const int64_t at = i * n + j;
        if (i + 1 < m)
          sum *= x.data()[at + n];
        else if (*below)
          sum *= (*below)->x[column];
        sum += dy.data()[at];
        out[at] = sum;
      }
      sums[column] = sum;
    }
  });
  *below = Below{std::move(sums), std::vector<double>(x.data(), x.data() + n)};
}

// The adjoints from s: times y of the row before. `before` is that of the first of these rows, nullptr where
// there is none.
void MultiplyByResultsBefore(const KernelContext& context, const Matrix& y, const double* before,
                             Matrix* sums) {
  const int64_t m = y.rows(), n = y.columns();
  double* const out = sums->mutable_data();
  for (int64_t j = 0; m > 0 && before != nullptr && j < n; ++j) out[j] = before[j] * out[j];
  if (m < 2) return;
  ParallelFor((m - 1) * n, kCellsBetweenPolls, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      if (IsTimeToStop(context, at - begin)) return;
      out[at + n] = y.data()[at] * out[at + n];
    }
  });
}

// ---- cummin, cummax: y[i] is the cell that has changed it last, and its adjoint that cell's.

// Of each column the row among all that has changed y last, y, and the sum of its adjoints so far.
struct Taken {
  std::vector<double> row, y, sum;
};

// Rows from row `first` of all on; `taken` becomes that of the last of them, and `ended` is told the sums of
// rows in front of them that end here.
template <typename Ended>
void SumDownward(const KernelContext& context, const Matrix& y, const Matrix& dy, int64_t first,
                 std::optional<Taken>* taken, double* out, const Ended& ended) {
  const int64_t m = y.rows(), n = y.columns();
  if (m == 0) return;
  Taken now{std::vector<double>(static_cast<size_t>(n)), std::vector<double>(static_cast<size_t>(n)),
            std::vector<double>(static_cast<size_t>(n))};
  std::fill_n(out, m * n, 0.0);
  for (int64_t j = 0; j < n; ++j) {
    const auto column = static_cast<size_t>(j);
    int64_t row = *taken ? static_cast<int64_t>((*taken)->row[column]) : first;
    double value = *taken ? (*taken)->y[column] : y.data()[j];
    double sum = *taken ? (*taken)->sum[column] : 0;
    const auto give = [&] {
      if (row >= first)
        out[(row - first) * n + j] = sum;
      else
        ended(j, row, sum);
    };
    for (int64_t i = 0; i < m; ++i) {
      if (IsTimeToStop(context, i)) return;
      const double next = y.data()[i * n + j];
      if (next != value && !(std::isnan(next) && std::isnan(value))) {
        give();
        row = first + i;
        value = next;
        sum = 0;
      }
      sum += dy.data()[i * n + j];
    }
    if (row >= first) give();
    now.row[column] = static_cast<double>(row);
    now.y[column] = value;
    now.sum[column] = sum;
  }
  *taken = std::move(now);
}

Result<Value> RunBackward(const KernelCall& call) {
  const Matrix &x = call.inputs[kX]->matrix(), &y = call.inputs[kResult]->matrix(),
               &dy = call.inputs[kAdjoint]->matrix();
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(x.rows(), x.columns()));
  if (call.node.Text("of") == "cumprod") {
    std::optional<Below> below;
    SumUpward(call.context, x, dy, &below, result.mutable_data());
    MultiplyByResultsBefore(call.context, y, nullptr, &result);
  } else {
    std::optional<Taken> taken;
    SumDownward(call.context, y, dy, 0, &taken, result.mutable_data(), [](int64_t, int64_t, double) {});
  }
  HEDDLE_RETURN_IF_ERROR(CancelledOrOk(call.context));
  return Value(std::move(result));
}

// Rows of equal length as a matrix.
Result<Matrix> MatrixOfRows(std::span<const std::vector<double>* const> rows) {
  const int64_t columns = rows.empty() ? 0 : std::ssize(*rows[0]);
  HEDDLE_ASSIGN_OR_RETURN(Matrix matrix, Matrix::Dense(std::ssize(rows), columns));
  double* out = matrix.mutable_data();
  for (const std::vector<double>* row : rows) out = std::copy(row->begin(), row->end(), out);
  return matrix;
}

std::vector<double> RowOf(const Matrix& matrix, int64_t row) {
  return {matrix.data() + row * matrix.columns(), matrix.data() + (row + 1) * matrix.columns()};
}

// ---- Products on several ranks.

enum ProductStage { kTurn, kSum, kMultiply };

// X and dy of each rank go to the rank opposite; the last y of each to all, with the number of the rank.
Status TurnRanks(const StageCall& call, std::span<Value> outputs) {
  const auto ranks = static_cast<size_t>(call.ranks());
  const auto opposite = static_cast<int32_t>(ranks) - 1 - call.rank;
  for (const auto& [input, place] : {std::pair{kX, size_t{0}}, {kAdjoint, ranks}}) {
    const Matrix& rows = call.inputs[input]->matrix();
    for (int32_t rank = 0; rank < call.ranks(); ++rank)
      outputs[place + static_cast<size_t>(rank)] = Value(rank == opposite ? rows : rows.Rows(0, 0));
  }
  const Matrix& y = call.inputs[kResult]->matrix();
  const int64_t n = y.columns();
  HEDDLE_ASSIGN_OR_RETURN(Matrix last, Matrix::Dense(y.rows() == 0 ? 0 : 1, 1 + n));
  if (y.rows() > 0) {
    last.mutable_data()[0] = call.rank;
    std::copy_n(y.data() + (y.rows() - 1) * n, n, last.mutable_data() + 1);
  }
  outputs[2 * ranks] = Value(std::move(last));
  return OkStatus();
}

Status SumTurned(const StageCall& call, std::span<Value> outputs) {
  const auto opposite = static_cast<size_t>(call.ranks() - 1 - call.rank);
  const Matrix &x = call.Parts(0)[opposite]->matrix(), &dy = call.Parts(1)[opposite]->matrix();
  std::optional<Below> below;
  if (call.before != nullptr && call.before->matrix().rows() > 0)
    below = Below{RowOf(call.before->matrix(), 0), RowOf(call.before->matrix(), 1)};
  HEDDLE_ASSIGN_OR_RETURN(Matrix sums, Matrix::Dense(x.rows(), x.columns()));
  SumUpward(call.context, x, dy, &below, sums.mutable_data());
  HEDDLE_RETURN_IF_ERROR(CancelledOrOk(call.context));
  const auto ranks = static_cast<size_t>(call.ranks());
  for (size_t rank = 0; rank < ranks; ++rank)
    outputs[rank] = Value(rank == opposite ? sums : sums.Rows(0, 0));
  outputs[ranks] = call.Received(2);
  std::vector<const std::vector<double>*> rows;
  if (below) rows = {&below->sums, &below->x};
  HEDDLE_ASSIGN_OR_RETURN(Matrix handed_on, MatrixOfRows(rows));
  outputs[ranks + 1] = Value(std::move(handed_on));
  return OkStatus();
}

Status MultiplyTurned(const StageCall& call, std::span<Value> outputs) {
  const auto opposite = static_cast<size_t>(call.ranks() - 1 - call.rank);
  const Matrix& sums = call.Parts(0)[opposite]->matrix();
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(sums.rows(), sums.columns()));
  std::copy_n(sums.data(), sums.cells(), result.mutable_data());
  const Matrix& last_of_ranks = call.Received(1).matrix();
  const double* before = nullptr;
  for (int64_t i = 0; i < last_of_ranks.rows(); ++i)
    if (const double* const row = last_of_ranks.data() + i * last_of_ranks.columns(); row[0] < call.rank)
      before = row + 1;
  MultiplyByResultsBefore(call.context, call.inputs[kResult]->matrix(), before, &result);
  HEDDLE_RETURN_IF_ERROR(CancelledOrOk(call.context));
  outputs[0] = Value(std::move(result));
  return OkStatus();
}

Status RunProductStage(const StageCall& call, std::span<Value> outputs) {
  switch (call.stage) {
    case kTurn: return TurnRanks(call, outputs);
    case kSum: return SumTurned(call, outputs);
    default: return MultiplyTurned(call, outputs);
  }
}

// ---- Extremes on several ranks.

// Sums that end here of rows of earlier ranks go to all: (column, row, sum), at most one a column; of the
// last rank those that never end, too.
Status RunExtremeStage(const StageCall& call, std::span<Value> outputs) {
  const int64_t first = call.rows.Begin(call.rank);
  if (call.stage == 0) {
    const Matrix &y = call.inputs[kResult]->matrix(), &dy = call.inputs[kAdjoint]->matrix();
    std::optional<Taken> taken;
    if (call.before != nullptr && call.before->matrix().rows() > 0)
      taken = Taken{RowOf(call.before->matrix(), 0), RowOf(call.before->matrix(), 1),
                    RowOf(call.before->matrix(), 2)};
    HEDDLE_ASSIGN_OR_RETURN(Matrix own, Matrix::Dense(y.rows(), y.columns()));
    std::vector<double> ended;
    const auto end = [&](int64_t column, int64_t row, double sum) {
      ended.insert(ended.end(), {static_cast<double>(column), static_cast<double>(row), sum});
    };
    SumDownward(call.context, y, dy, first, &taken, own.mutable_data(), end);
    HEDDLE_RETURN_IF_ERROR(CancelledOrOk(call.context));
    if (taken && call.rank + 1 == call.ranks())
      for (size_t j = 0; j < taken->row.size(); ++j)
        if (taken->row[j] < static_cast<double>(first))
          end(static_cast<int64_t>(j), static_cast<int64_t>(taken->row[j]), taken->sum[j]);
    HEDDLE_ASSIGN_OR_RETURN(Matrix rows, Matrix::Dense(std::ssize(ended) / 3, 3));
    std::copy(ended.begin(), ended.end(), rows.mutable_data());
    std::vector<const std::vector<double>*> handed_on;
    if (taken) handed_on = {&taken->row, &taken->y, &taken->sum};
    HEDDLE_ASSIGN_OR_RETURN(Matrix next, MatrixOfRows(handed_on));
    outputs[0] = Value(std::move(own));
    outputs[1] = Value(std::move(rows));
    outputs[2] = Value(std::move(next));
    return OkStatus();
  }
  const Matrix& own = call.Received(0).matrix();
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(own.rows(), own.columns()));
  std::copy_n(own.data(), own.cells(), result.mutable_data());
  const Matrix& ended = call.Received(1).matrix();
  for (int64_t i = 0; i < ended.rows(); ++i) {
    if (IsTimeToStop(call.context, i)) return Cancelled("cancelled");
    const double* const one = ended.data() + 3 * i;
    const int64_t row = static_cast<int64_t>(one[1]) - first;
    if (row >= 0 && row < own.rows())
      result.mutable_data()[row * own.columns() + static_cast<int64_t>(one[0])] = one[2];
  }
  outputs[0] = Value(std::move(result));
  return OkStatus();
}

bool IsOfProducts(const Node& node, std::span<const ValueInfo>) { return node.Text("of") == "cumprod"; }
bool IsOfExtremes(const Node& node, std::span<const ValueInfo>) { return node.Text("of") != "cumprod"; }

// X and dy there, the sums back.
double MovedBytes(const Node&, std::span<const ValueInfo> inputs, const RankGrid&) {
  return 3 * static_cast<double>(KnownBytes(inputs[kX]));
}

constexpr Reach kTurned[] = {Reach::kParts, Reach::kParts, Reach::kAll},
                kSums[] = {Reach::kParts, Reach::kHere, Reach::kNext},
                kEnded[] = {Reach::kHere, Reach::kAll, Reach::kNext};
constexpr Stage kProductStages[] = {{.outputs = kTurned, .reads_inputs = true},
                                    {.outputs = kSums},
                                    {.reads_inputs = true}},
                kExtremeStages[] = {{.outputs = kEnded, .reads_inputs = true}, {}};
constexpr StagedForm kColumns = ByColumns(AllByRows);
constexpr StagedForm kExtremes = {.stages = kExtremeStages,
                                  .result = StagedResult::kSameRows,
                                  .other = &kColumns,
                                  .applies = IsOfExtremes,
                                  .run = RunExtremeStage};
constexpr StagedForm kProducts = {.stages = kProductStages,
                                  .result = StagedResult::kSameRows,
                                  .other = &kExtremes,
                                  .applies = IsOfProducts,
                                  .moved_bytes = MovedBytes,
                                  .run = RunProductStage};

}  // namespace

extern constexpr Operator kCumulativeBackward = {.name = "cumulative_backward",
                                                 .parameters = "X y dy",
                                                 .min_inputs = 3,
                                                 .max_inputs = 3,
                                                 .infer = InferBackward,
                                                 .input_use = AllByRows,
                                                 .staged = &kProducts,
                                                 .run = RunBackward,
                                                 .storages = Storages::kDense};

}  // namespace heddle::ops
