// SPDX-License-Identifier: Apache-2.0
#include "ops/statistics/ranks.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/arguments.h"
#include "ops/cells/storage.h"

namespace heddle::ops {
namespace {

Status CheckColumn(std::string_view op, const Shape& shape, StatusCode code) {
  if (shape.columns == kUnknown || shape.columns == 1) return OkStatus();
  return Status(code, fmt::format("{}: needs a column vector, got {}", op, shape))
      .WithNote(shape.rows == 1 ? "t(x) makes a column of a row" : "X[,1] is the first column");
}

Status CheckWeights(std::string_view op, const Shape& shape, const Shape& weights, StatusCode code) {
  const auto fits = [](int64_t a, int64_t b) { return a == kUnknown || b == kUnknown || a == b; };
  if (fits(shape.rows, weights.rows) && fits(shape.columns, weights.columns)) return OkStatus();
  return Status(code, fmt::format("{}: the weights are {} beside values of {}", op, weights, shape));
}

}  // namespace

Status CheckRankedColumns(const InferContext& context, std::string_view name, int weights) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "argument 1"));
  const Shape& shape = context.inputs[0].shape;
  HEDDLE_RETURN_IF_ERROR(CheckColumn(name, shape, StatusCode::kInvalidArgument));
  if (weights < 0 || !IsGiven(context.node, weights)) return OkStatus();
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, weights, "the weights"));
  return CheckWeights(name, shape, context.inputs[static_cast<size_t>(weights)].shape,
                      StatusCode::kInvalidArgument);
}

double RankedColumn::AtRank(double rank, bool averages) const {
  size_t i = 0;
  double reached = weights[0];
  while (reached < rank && i + 1 < values.size()) reached += weights[++i];
  if (!averages || reached != rank || !(rank < static_cast<double>(values.size()))) return values[i];
  size_t next = i + 1;
  while (next < values.size() && weights[next] == 0) ++next;
  return next == values.size() ? values[i] : (values[i] + values[next]) / 2;
}

double RankedColumn::Quantile(double p, bool may_average) const {
  const double rank = std::ceil(p * total);
  return AtRank(std::max(1.0, rank), may_average && std::fmod(total, 2) == 0 && rank >= 1);
}

Result<RankedColumn> RankColumn(const KernelCall& call, std::string_view name, int weights) {
  const Matrix& x = call.inputs[0]->matrix();
  HEDDLE_RETURN_IF_ERROR(CheckColumn(name, x.shape(), StatusCode::kFailedPrecondition));
  if (x.rows() == 0) return FailedPrecondition("{}: the column has no rows", name);
  HEDDLE_ASSIGN_OR_RETURN(const Matrix cells, AsDense(x));
  const auto n = static_cast<size_t>(x.rows());
  RankedColumn column{.values = std::vector<double>(cells.data(), cells.data() + n)};
  const auto before = [](double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); };
  const bool weighted = weights >= 0 && static_cast<size_t>(weights) < call.inputs.size() &&
                        call.inputs[static_cast<size_t>(weights)] != nullptr;
  if (!weighted) {
    std::sort(column.values.begin(), column.values.end(), before);
    column.weights.assign(n, 1.0);
    column.total = static_cast<double>(n);
    return column;
  }
  const Matrix& w = call.inputs[static_cast<size_t>(weights)]->matrix();
  HEDDLE_RETURN_IF_ERROR(CheckWeights(name, x.shape(), w.shape(), StatusCode::kFailedPrecondition));
  HEDDLE_ASSIGN_OR_RETURN(const Matrix counts, AsDense(w));
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return before(cells.data()[a], cells.data()[b]); });
  for (size_t i = 0; i < n; ++i) {
    const double count = counts.data()[order[i]];
    if (!(count >= 0 && count < 0x1p53 && std::floor(count) == count))
      return FailedPrecondition("{}: weights are counts, but one is {}", name, Scalar(count).ToText());
    column.values[i] = cells.data()[order[i]];
    column.weights.push_back(count);
    column.total += count;
  }
  if (column.total == 0) return FailedPrecondition("{}: all weights are 0", name);
  return column;
}

}  // namespace heddle::ops
