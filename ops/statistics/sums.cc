// SPDX-License-Identifier: Apache-2.0
#include "ops/statistics/sums.h"

#include <algorithm>
#include <array>
#include <utility>

#include "ops/aggregate/aggregate.h"
#include "ops/aggregate/wide_sums.h"
#include "ops/base/arguments.h"
#include "ops/base/parallel.h"
#include "ops/cells/storage.h"
#include "ops/frame/row_pieces.h"

namespace heddle::ops {
namespace {

double CellsOf(const Shape& shape) {
  return static_cast<double>(shape.rows) * static_cast<double>(shape.columns);
}

// Rows of the matrices that a statistic is of: all of them, or those that a rank has.
class SummedRows {
 public:
  static Result<SummedRows> Of(const KernelCall& call, const StatisticOfSums& statistic, RowSpan rows) {
    const size_t count = statistic.matrices(call.node);
    SummedRows summed(call, rows);
    for (size_t i = 0; i < count; ++i) {
      const Matrix& x = call.inputs[i]->matrix();
      const Shape first{rows.total, call.inputs[0]->matrix().columns()};
      const Shape shape{x.rows() + rows.total - (rows.end - rows.begin), x.columns()};
      if (shape != first)
        return FailedPrecondition("{}: the matrices differ in shape: {} and {}", statistic.name, first,
                                  shape);
      if (shape.Cells() == 0)
        return FailedPrecondition("{}: the {} matrix has no cells", statistic.name, shape);
      HEDDLE_ASSIGN_OR_RETURN(Matrix dense, AsDense(x));
      summed.cells_.push_back(std::move(dense));
    }
    return summed;
  }

  double cells() const { return CellsOf(shape()); }
  Shape shape() const { return {rows_.total, cells_[0].columns()}; }

  // The sum of the terms as a partial value.
  Result<Matrix> NodesOf(const TermOfCells& term) const {
    std::vector<const double*> data;
    for (const Matrix& matrix : cells_) data.push_back(matrix.data());
    HEDDLE_ASSIGN_OR_RETURN(Matrix terms, Matrix::Dense(cells_[0].rows(), cells_[0].columns()));
    double* const out = terms.mutable_data();
    ParallelFor(terms.cells(), 32768, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end && !IsCancelled(call_.context.cancelled); ++k)
        out[k] = term(data.data(), k);
    });
    if (IsCancelled(call_.context.cancelled)) return Cancelled("cancelled");
    const Value value(std::move(terms));
    HEDDLE_ASSIGN_OR_RETURN(const Value nodes, RunSum(call_, value, shape(), Phase::kPartial, rows_));
    return nodes.matrix();
  }

  static Result<Value> RunSum(const KernelCall& call, const Value& input, const Shape& shape, Phase phase,
                              RowSpan rows) {
    const std::array<const Value*, 1> inputs = {&input};
    const std::array<ValueInfo, 1> infos = {ValueInfo::OfMatrix(shape)};
    return RunFullAggregate({.node = call.node,
                             .phase = phase,
                             .inputs = inputs,
                             .input_infos = infos,
                             .row_begin = rows.begin,
                             .row_end = rows.end,
                             .total_rows = rows.total,
                             .context = call.context},
                            AggregateKind::kSum);
  }

 private:
  SummedRows(const KernelCall& call, RowSpan rows) : call_(call), rows_(rows) {}

  const KernelCall& call_;
  RowSpan rows_;
  std::vector<Matrix> cells_;  // Dense.
};

// The sum that all nodes of its partial value make.
Result<WideNumber> SumOfNodes(const KernelCall& call, const Shape& shape, Matrix nodes) {
  const Value value(std::move(nodes));
  HEDDLE_ASSIGN_OR_RETURN(
      const Value sum, SummedRows::RunSum(call, value, shape, Phase::kFinish, {0, shape.rows, shape.rows}));
  return WideSum({.rows = shape.rows, .columns = shape.columns}, value.matrix(), sum.scalar().AsDouble());
}

// The partial values of several sums as one: the number of the sum stands before each row.
Result<Value> Numbered(std::span<const Matrix> sums) {
  int64_t rows = 0, width = 0;
  for (const Matrix& nodes : sums) {
    rows += nodes.rows();
    width = std::max(width, nodes.columns());
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix all, Matrix::Dense(rows, width + 1));
  double* out = all.mutable_data();
  for (size_t sum = 0; sum < sums.size(); ++sum)
    for (int64_t i = 0; i < sums[sum].rows(); ++i) {
      *out++ = static_cast<double>(sum);
      out = std::copy_n(sums[sum].data() + i * width, width, out);
    }
  return Value(std::move(all));
}

Result<std::vector<WideNumber>> SumsOfNumbered(const KernelCall& call, const Shape& shape, const Matrix& all,
                                               size_t count) {
  const int64_t width = all.columns() - 1;
  std::vector<WideNumber> sums;
  for (size_t sum = 0; sum < count; ++sum) {
    std::vector<const double*> rows;
    for (int64_t i = 0; i < all.rows(); ++i)
      if (const double* const row = all.data() + i * all.columns(); row[0] == static_cast<double>(sum))
        rows.push_back(row + 1);
    HEDDLE_ASSIGN_OR_RETURN(Matrix nodes, Matrix::Dense(static_cast<int64_t>(rows.size()), width));
    double* out = nodes.mutable_data();
    for (const double* row : rows) out = std::copy_n(row, width, out);
    HEDDLE_ASSIGN_OR_RETURN(sums.emplace_back(), SumOfNodes(call, shape, std::move(nodes)));
  }
  return sums;
}

Result<Value> NumberedNodes(const SummedRows& rows, std::span<const TermOfCells> terms) {
  std::vector<Matrix> nodes;
  for (const TermOfCells& term : terms) {
    HEDDLE_ASSIGN_OR_RETURN(nodes.emplace_back(), rows.NodesOf(term));
  }
  return Numbered(nodes);
}

}  // namespace

Result<Value> RunStatistic(const KernelCall& call, const StatisticOfSums& statistic) {
  const int64_t m = call.inputs[0]->matrix().rows();
  HEDDLE_ASSIGN_OR_RETURN(const SummedRows rows, SummedRows::Of(call, statistic, {0, m, m}));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<TermOfCells> first, statistic.first(call));
  std::vector<WideNumber> sums;
  const auto add = [&](std::span<const TermOfCells> terms) -> Status {
    for (const TermOfCells& term : terms) {
      HEDDLE_ASSIGN_OR_RETURN(Matrix nodes, rows.NodesOf(term));
      HEDDLE_ASSIGN_OR_RETURN(sums.emplace_back(), SumOfNodes(call, rows.shape(), std::move(nodes)));
    }
    return OkStatus();
  };
  HEDDLE_RETURN_IF_ERROR(add(first));
  HEDDLE_RETURN_IF_ERROR(add(statistic.second(call, rows.cells(), sums)));
  return Value(Scalar(statistic.result(call, rows.cells(), sums)));
}

Status RunStatisticStage(const StageCall& call, const StatisticOfSums& statistic, std::span<Value> outputs) {
  const KernelCall whole = call.WholeCall();
  const Shape shape = call.input_infos[0].shape;
  const double cells = CellsOf(shape);
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<TermOfCells> first, statistic.first(whole));
  std::vector<WideNumber> sums;
  if (call.stage > 0) {
    HEDDLE_ASSIGN_OR_RETURN(sums, SumsOfNumbered(whole, shape, call.Received(0).matrix(), first.size()));
  }
  if (call.stage == 2) {
    const size_t count = statistic.second(whole, cells, sums).size();
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<WideNumber> second,
                            SumsOfNumbered(whole, shape, call.Received(1).matrix(), count));
    sums.insert(sums.end(), second.begin(), second.end());
    outputs[0] = Value(Scalar(statistic.result(whole, cells, sums)));
    return OkStatus();
  }
  HEDDLE_ASSIGN_OR_RETURN(
      const SummedRows rows,
      SummedRows::Of(whole, statistic,
                     {call.rows.Begin(call.rank), call.rows.End(call.rank), call.rows.Length()}));
  if (call.stage == 0) {
    HEDDLE_ASSIGN_OR_RETURN(outputs[0], NumberedNodes(rows, first));
    return OkStatus();
  }
  outputs[0] = call.Received(0);
  HEDDLE_ASSIGN_OR_RETURN(outputs[1], NumberedNodes(rows, statistic.second(whole, cells, sums)));
  return OkStatus();
}

Status CheckOneShape(const InferContext& context, std::string_view name, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, static_cast<int>(i), fmt::format("argument {}", i + 1)));
    const Shape &first = context.inputs[0].shape, &shape = context.inputs[i].shape;
    if (first.IsKnown() && shape.IsKnown() && first != shape)
      return InvalidArgument("{}: the matrices differ in shape: {} and {}", name, first, shape);
  }
  return OkStatus();
}

}  // namespace heddle::ops
