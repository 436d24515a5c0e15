// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "ops/base/arguments.h"
#include "ops/cells/sort_keys.h"
#include "ops/cells/storage.h"
#include "ops/compressed/arrange_groups.h"
#include "ops/compressed/fold_columns.h"
#include "ops/compressed/occurring_cells.h"
#include "ops/statistics/quantile_stages.h"
#include "ops/statistics/ranks.h"

namespace heddle::ops {
namespace {

// The inputs are X, p or X, W, p.
int ProbabilityInput(const Node& node) { return static_cast<int>(node.inputs.size()) - 1; }
int WeightsInput(const Node& node) { return node.inputs.size() == 3 ? 1 : -1; }

Status CheckProbability(double p, StatusCode code) {
  if (p >= 0 && p <= 1) return OkStatus();
  return Status(code, fmt::format("quantile: p must be between 0 and 1, not {}", Scalar(p).ToText()));
}

Result<ValueInfo> InferQuantile(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(CheckRankedColumns(context, "quantile", WeightsInput(context.node)));
  const int at = ProbabilityInput(context.node);
  const ValueInfo& p = context.inputs[static_cast<size_t>(at)];
  if (p.IsMatrix()) return ValueInfo::OfMatrix({p.shape.rows, 1});
  HEDDLE_RETURN_IF_ERROR(RequireScalar(context, at, "p"));
  if (p.value_type == ValueType::kString) return InvalidArgument("quantile: p is a string, not a number");
  if (const Scalar* known = KnownScalar(context, at))
    HEDDLE_RETURN_IF_ERROR(CheckProbability(known->AsDouble(), StatusCode::kInvalidArgument));
  return ValueInfo::OfScalar(ValueType::kDouble);
}

// A number, or those of a column.
Result<std::vector<double>> ProbabilitiesOf(const Value& p) {
  std::vector<double> probabilities;
  if (p.IsScalar()) {
    probabilities = {p.scalar().AsDouble()};
  } else if (p.matrix().columns() == 1) {
    for (int64_t i = 0; i < p.matrix().rows(); ++i) probabilities.push_back(p.matrix().At(i, 0));
  } else {
    return FailedPrecondition("quantile: p must be a number or a column, not {}", p.matrix().shape());
  }
  for (const double probability : probabilities)
    HEDDLE_RETURN_IF_ERROR(CheckProbability(probability, StatusCode::kFailedPrecondition));
  return probabilities;
}

Result<Value> ValueOf(const KernelCall& call, const std::vector<double>& quantiles) {
  if (call.node.info.IsScalar()) return Value(Scalar(quantiles[0]));
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(static_cast<int64_t>(quantiles.size()), 1));
  std::copy(quantiles.begin(), quantiles.end(), result.mutable_data());
  return Value(std::move(result));
}

Result<Value> RunQuantile(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const QuantileRequest request, RequestOfQuantile(call));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<double> quantiles, Quantiles(call, request));
  return ValueOf(call, quantiles);
}

// The cells of a compressed column in ascending order, each with the number of cells up to its last.
struct CellsByRank {
  std::vector<std::pair<double, int64_t>> ends;
  bool has_nan = false;
  double At(double rank) const {
    return std::lower_bound(ends.begin(), ends.end(), static_cast<int64_t>(rank),
                            [](const auto& cell, int64_t wanted) { return cell.second < wanted; })
        ->first;
  }
};

CellsByRank RankTuples(const ColumnGroup& group, const Matrix& x) {
  const std::vector<double> tuples = TuplesAsDoubles(group);
  const std::vector<int64_t> rows = CountRowsOfTuples(group, x.first_row(), x.first_row() + x.rows());
  CellsByRank cells;
  for (size_t tuple = 0; tuple < tuples.size(); ++tuple) {
    const int64_t count = group.encoding == Encoding::kEmpty ? x.rows() : rows[tuple];
    if (count == 0) continue;
    cells.ends.emplace_back(tuples[tuple], count);
    cells.has_nan = cells.has_nan || std::isnan(tuples[tuple]);
  }
  std::sort(cells.ends.begin(), cells.ends.end(),
            [](const auto& a, const auto& b) { return ExactSortKey(a.first) < ExactSortKey(b.first); });
  for (size_t i = 1; i < cells.ends.size(); ++i) cells.ends[i].second += cells.ends[i - 1].second;
  return cells;
}

// Of a compressed column, from how many rows have each tuple.
Result<std::optional<Value>> RunQuantileOfCodes(const KernelCall& call) {
  const std::optional<Value> nothing;
  const Matrix& x = call.inputs[0]->matrix();
  const Result<QuantileRequest> request = RequestOfQuantile(call);
  if (!x.IsCompressed() || x.columns() != 1 || x.rows() == 0 || !request.ok()) return nothing;
  const auto weights = static_cast<size_t>(request->weights);
  if (request->weights >= 0 && weights < call.inputs.size() && call.inputs[weights] != nullptr)
    return nothing;
  const ColumnGroup& group = x.groups().groups[0];
  if (group.encoding == Encoding::kUncompressed || !DictionariesPay(x)) return nothing;
  const CellsByRank cells = RankTuples(group, x);
  std::vector<double> quantiles(request->probabilities.size(), std::numeric_limits<double>::quiet_NaN());
  for (size_t i = 0; i < quantiles.size() && !cells.has_nan; ++i) {
    const auto [low, high] =
        RanksOf(request->probabilities[i], static_cast<double>(x.rows()), request->averages);
    quantiles[i] = QuantileOf(cells.At(low), cells.At(high));
  }
  HEDDLE_ASSIGN_OR_RETURN(Value result, ValueOf(call, quantiles));
  if (!result.IsMatrix()) return std::optional<Value>(std::move(result));
  HEDDLE_ASSIGN_OR_RETURN(Matrix column, ToElementType(result.matrix(), call.node.info.element_type));
  return std::optional<Value>(std::move(column));
}

InputUse UseOfInput(const Node& node, std::span<const ValueInfo>, int i) {
  return node.Is("median") || i != ProbabilityInput(node) ? InputUse::kRows : InputUse::kWhole;
}

double SortedWorkingBytes(const Node& node, std::span<const ValueInfo> inputs) {
  const double arrays = WeightsInput(node) < 0 ? 2 : 5;
  return arrays * sizeof(double) * static_cast<double>(inputs[0].shape.rows);
}

constexpr Operator Quantile(Operator op) {
  op.adjoints = op.max_inputs == 3 ? "*; 0; 0" : "*; 0";
  op.differentiate = DifferentiateRanks;
  op.infer = InferQuantile;
  op.input_use = UseOfInput;
  op.staged = &kQuantileStages;
  op.run = RunQuantile;
  op.run_compressed = op.max_inputs == 2 ? RunQuantileOfCodes : nullptr;  // Without weights.
  op.may_fail = true;
  op.working_bytes = SortedWorkingBytes;
  return op;
}

Result<ValueInfo> InferMedian(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(CheckRankedColumns(context, "median", 1));
  return ValueInfo::OfScalar(ValueType::kDouble);
}

double MedianWorkingBytes(const Node&, std::span<const ValueInfo> inputs) {
  return 5 * sizeof(double) * static_cast<double>(inputs[0].shape.rows);
}

}  // namespace

Result<QuantileRequest> RequestOfQuantile(const KernelCall& call) {
  if (call.node.Is("median"))
    return QuantileRequest{.name = "median", .weights = 1, .probabilities = {0.5}, .averages = true};
  const Value& p = *call.inputs[static_cast<size_t>(ProbabilityInput(call.node))];
  HEDDLE_ASSIGN_OR_RETURN(std::vector<double> probabilities, ProbabilitiesOf(p));
  return QuantileRequest{.name = "quantile",
                         .weights = WeightsInput(call.node),
                         .probabilities = std::move(probabilities),
                         .averages = p.IsScalar()};
}

/// quantile(X, p): the value at rank max(1, ceil(p * N)) of the N cells of a column in ascending order.
///
/// Shapes:  X is n x 1. A number p gives a number, a column p of k numbers k x 1.
/// Value:   for a number p whose p * N is whole, the mean of this rank and the next, if it is below N (R's
/// type
///          2); never averaged for a column p (R's type 1). NaN if a cell is.
/// Errors:  X that is no column or has no rows; p outside [0, 1].
/// Rows:    whole; on several ranks in stages (quantile_stages.h).
/// Cost:    reads X three times on all threads (select_ranks.h); with weights, sorts a copy.
extern constexpr Operator kQuantile = Quantile({.name = "quantile",
                                                .form = CallForm::kPositional,
                                                .parameters = "X p",
                                                .overload = "weightedQuantile",
                                                .min_inputs = 2,
                                                .max_inputs = 2});

/// quantile(X, W, p): the same of X[i] repeated W[i] times.
extern constexpr Operator kWeightedQuantile =
    Quantile({.name = "weightedQuantile", .parameters = "X W p", .min_inputs = 3, .max_inputs = 3});

/// median(X), median(X, W): quantile(X, 0.5) and quantile(X, W, 0.5).
extern constexpr Operator kMedian = {.name = "median",
                                     .form = CallForm::kPositional,
                                     .parameters = "X W?",
                                     .min_inputs = 1,
                                     .max_inputs = 2,
                                     .infer = InferMedian,
                                     .input_use = UseOfInput,
                                     .staged = &kQuantileStages,
                                     .run = RunQuantile,
                                     .run_compressed = RunQuantileOfCodes,
                                     .may_fail = true,
                                     .working_bytes = MedianWorkingBytes,
                                     .adjoints = "*; 0",
                                     .differentiate = DifferentiateRanks};

}  // namespace heddle::ops
