// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/cells/storage.h"
#include "ops/statistics/ranked_windows.h"
#include "ops/statistics/ranks.h"

namespace heddle::ops {
namespace {

enum Input { kX, kAdjoint, kW, kP };

constexpr int64_t kRowsBetweenPolls = 1 << 16;

// The operator whose adjoint it is, and its name for scripts.
std::string_view NameOf(const Node& node) { return node.Text("of"); }

Result<ValueInfo> InferRanksBackward(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(CheckRankedColumns(context, NameOf(context.node), kW));
  return ValueInfo::OfMatrix({context.inputs[kX].shape.rows, 1});
}

bool IsOfMiddleHalf(const Node& node) { return NameOf(node) == "interQuartileMean"; }

// A quantile and its adjoint.
struct Asked {
  double p, adjoint;
};
struct AskedQuantiles {
  std::vector<Asked> quantiles;
  bool averages;
};
AskedQuantiles QuantilesOf(const KernelCall& call) {
  const Value& adjoint = *call.inputs[kAdjoint];
  if (adjoint.IsScalar()) return {{{NumberOr(call, kP, 0.5), adjoint.scalar().AsDouble()}}, true};
  AskedQuantiles asked{{}, false};
  const Matrix& p = call.inputs[kP]->matrix();
  for (int64_t i = 0; i < p.rows(); ++i) asked.quantiles.push_back({p.At(i, 0), adjoint.matrix().At(i, 0)});
  return asked;
}

// What the places of the sorted column get of the adjoint.
std::vector<double> SharesOfPlaces(const KernelCall& call, const RankedColumn& column) {
  std::vector<double> shares(column.values.size(), 0.0);
  if (IsOfMiddleHalf(call.node)) {
    const double part = call.inputs[kAdjoint]->scalar().AsDouble() / (0.5 * column.total);
    column.ForMiddleHalf([&](size_t place, double amount) { shares[place] += amount * part; });
    return shares;
  }
  const AskedQuantiles asked = QuantilesOf(call);
  for (const auto& [p, amount] : asked.quantiles) {
    const auto [low, high] = column.PlacesOf(p, asked.averages);
    shares[low] += 0.5 * amount;
    shares[high] += 0.5 * amount;
  }
  return shares;
}

// Cells of one value share what their places get, each as often as it counts: at the first of these places
// stands then what a count of 1 gets.
void ShareAmongEqualValues(const RankedColumn& column, std::vector<double>* shares) {
  for (size_t begin = 0, end = 0; begin < shares->size(); begin = end) {
    double sum = 0, count = 0;
    for (; end < shares->size() && column.values[end] == column.values[begin]; ++end) {
      sum += (*shares)[end];
      count += column.weights[end];
    }
    (*shares)[begin] = sum / count;
  }
}

double CountOfRow(const Value* weights, int64_t row) {
  return weights == nullptr ? 1 : weights->matrix().At(row, 0);
}

Result<Value> RunRanksBackward(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const RankedColumn column, RankColumn(call, NameOf(call.node), kW));
  HEDDLE_ASSIGN_OR_RETURN(const Matrix x, AsDense(call.inputs[kX]->matrix()));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, FilledMatrix(x.rows(), 1, column.has_nan ? nan : 0));
  if (column.has_nan) return Value(std::move(result));
  std::vector<double> shares = SharesOfPlaces(call, column);
  ShareAmongEqualValues(column, &shares);
  for (int64_t i = 0; i < x.rows(); ++i) {
    if (i % kRowsBetweenPolls == 0 && IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
    const double count = CountOfRow(call.inputs[kW], i);
    if (count == 0) continue;
    const auto first = std::lower_bound(column.values.begin(), column.values.end(), x.data()[i]);
    result.mutable_data()[i] = count * shares[static_cast<size_t>(first - column.values.begin())];
  }
  return Value(std::move(result));
}

// ---- Quantiles on several ranks: all find the values that they take, count how often these are there, and
// give their own cells the shares.

enum StageNumber { kFindValues = kWindowStages, kCount, kShare };

// A value that gets something of the adjoint. Rows of matrices are written and read as such.
struct Taken {
  static constexpr int64_t kColumns = 3;
  double value;
  double through;  // The weight of all values up to it: the same for the same place only.
  double share;    // Of the place; of all cells of this value where the total is not exact.
};

Result<Value> RowsOf(const std::vector<Taken>& taken) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix rows, Matrix::Dense(static_cast<int64_t>(taken.size()), Taken::kColumns));
  double* out = rows.mutable_data();
  for (const Taken& one : taken)
    for (const double cell : {one.value, one.through, one.share}) *out++ = cell;
  return Value(std::move(rows));
}

// The values, ascending, each once, with the sum of what its places get, which adds up by place, at a place
// in the order of the rows.
std::vector<Taken> ByValue(const Matrix& rows) {
  std::vector<Taken> places;
  for (int64_t i = 0; i < rows.rows(); ++i) {
    const double* const row = rows.data() + i * Taken::kColumns;
    places.push_back({row[0], row[1], row[2]});
  }
  std::stable_sort(places.begin(), places.end(),
                   [](const Taken& a, const Taken& b) { return a.through < b.through; });
  std::vector<Taken> values;
  for (size_t begin = 0, end = 0; begin < places.size(); begin = end) {
    double share = 0;
    for (; end < places.size() && places[end].through == places[begin].through; ++end)
      share += places[end].share;
    if (values.empty() || values.back().value != places[begin].value)
      values.push_back({places[begin].value, 0, 0});
    values.back().share += share;
  }
  return values;
}

// Calls use(i, count, value) for the cells of this rank that are one of the values and count.
template <typename Use>
Status ForTakenCells(const StageCall& call, const std::vector<Taken>& values, const Use& use) {
  HEDDLE_ASSIGN_OR_RETURN(const Matrix x, AsDense(call.inputs[kX]->matrix()));
  const Value* const weights = call.inputs[kW];
  for (int64_t i = 0; i < x.rows(); ++i) {
    const auto value = std::lower_bound(values.begin(), values.end(), x.data()[i],
                                        [](const Taken& a, double b) { return a.value < b; });
    if (value == values.end() || value->value != x.data()[i]) continue;
    const double count = CountOfRow(weights, i);
    if (count != 0) use(i, count, static_cast<size_t>(value - values.begin()));
  }
  return OkStatus();
}

Status FindValues(const StageCall& call, const RankedTotals& totals, std::span<Value> outputs) {
  std::vector<Taken> taken;
  if (!totals.has_nan) {
    WindowReader reader = WindowsOf(call, totals);
    const KernelCall whole = call.WholeCall();
    const AskedQuantiles asked = QuantilesOf(whole);
    const auto [first, last] =
        OwnPlaces(static_cast<int64_t>(asked.quantiles.size()), call.rank, call.ranks());
    if (!totals.is_exact()) {
      if (call.rank == 0) {
        const RankedColumn column = ColumnOf(reader.Next());
        std::vector<double> shares = SharesOfPlaces(whole, column);
        ShareAmongEqualValues(column, &shares);
        for (size_t i = 0; i < shares.size(); ++i)
          if (i == 0 || column.values[i] != column.values[i - 1])
            if (shares[i] != 0) taken.push_back({column.values[i], static_cast<double>(i), shares[i]});
      }
    } else {
      for (int64_t i = first; i < last; ++i) {
        const auto& [p, amount] = asked.quantiles[static_cast<size_t>(i)];
        const auto [low, high] = RanksOf(p, totals.total, asked.averages);
        const MergedWindow window = reader.Next();
        for (const double place : {low - 1, high - 1})
          taken.push_back({window.At(place).keys[0], window.WeightThrough(place), 0.5 * amount});
      }
    }
  }
  HEDDLE_ASSIGN_OR_RETURN(outputs[1], RowsOf(taken));
  return OkStatus();
}

Status CountValues(const StageCall& call, const std::vector<Taken>& values, std::span<Value> outputs) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix counts, FilledMatrix(1, static_cast<int64_t>(values.size()), 0));
  HEDDLE_RETURN_IF_ERROR(ForTakenCells(
      call, values, [&](int64_t, double count, size_t value) { counts.mutable_data()[value] += count; }));
  outputs[1] = call.Received(1);
  outputs[2] = Value(std::move(counts));
  return OkStatus();
}

Status Share(const StageCall& call, const RankedTotals& totals, std::vector<Taken> values,
             std::span<Value> outputs) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  HEDDLE_ASSIGN_OR_RETURN(Matrix result,
                          FilledMatrix(call.inputs[kX]->matrix().rows(), 1, totals.has_nan ? nan : 0));
  const Matrix& counts = call.Received(2).matrix();
  for (size_t value = 0; totals.is_exact() && value < values.size(); ++value) {
    double count = 0;
    for (int64_t rank = 0; rank < counts.rows(); ++rank)
      count += counts.data()[rank * counts.columns() + static_cast<int64_t>(value)];
    values[value].share /= count;
  }
  HEDDLE_RETURN_IF_ERROR(ForTakenCells(call, values, [&](int64_t i, double count, size_t value) {
    result.mutable_data()[i] = count * values[value].share;
  }));
  outputs[0] = Value(std::move(result));
  return OkStatus();
}

Status RunStage(const StageCall& call, std::span<Value> outputs) {
  const ColumnOfRanks column{.name = NameOf(call.node), .weights = kW};
  if (call.stage < kWindowStages) {
    const AskedQuantiles asked = QuantilesOf(call.WholeCall());
    const auto ranks = [&](double total) {
      std::vector<std::pair<double, double>> wanted;
      for (const Asked& one : asked.quantiles) wanted.push_back(RanksOf(one.p, total, asked.averages));
      return wanted;
    };
    return FindWindows(call, column, ranks, outputs);
  }
  const RankedTotals totals = RankedTotals::OfRow(call.Received(0).matrix());
  outputs[0] = call.Received(0);
  if (call.stage == kFindValues) return FindValues(call, totals, outputs);
  const std::vector<Taken> values = ByValue(call.Received(1).matrix());
  return call.stage == kCount ? CountValues(call, values, outputs) : Share(call, totals, values, outputs);
}

// The part of a value at an end of the middle half depends on all of its cells, in their order.
bool IsOfQuantiles(const Node& node, std::span<const ValueInfo>) { return !IsOfMiddleHalf(node); }

InputUse UseOfInput(const Node&, std::span<const ValueInfo>, int i) {
  return i == kX || i == kW ? InputUse::kRows : InputUse::kWhole;
}

constexpr Reach kValues[] = {Reach::kHere, Reach::kAll};
constexpr Reach kValuesAndCounts[] = {Reach::kHere, Reach::kHere, Reach::kAll};
constexpr Stage kStages[] = {kDrawnStage,
                             kNarrowStage,
                             kSampleStage,
                             kWindowStage,
                             {.outputs = kValues, .reads_inputs = true},
                             {.outputs = kValuesAndCounts, .reads_inputs = true},
                             {.reads_inputs = true}};
constexpr StagedForm kStaged = {
    .stages = kStages, .result = StagedResult::kSameRows, .applies = IsOfQuantiles, .run = RunStage};

double RanksWorkingBytes(const Node&, std::span<const ValueInfo> inputs) {
  return 6 * sizeof(double) * static_cast<double>(inputs[kX].shape.rows);
}

}  // namespace

void DifferentiateRanks(AdjointCall& call) {
  const Node& node = call.node();
  const bool has_p = node.Is("quantile") || node.Is("weightedQuantile");
  const bool weighted = IsGiven(node, 1) && !node.Is("quantile");
  const size_t p = node.inputs.size() - 1;
  call.Give(0, call.Add("ranks_backward",
                        {call.Input(0), call.Adjoint(), weighted ? call.Input(1) : kNoNode,
                         has_p ? call.Input(p) : kNoNode},
                        {{"of", Scalar(std::string(node.Is("weightedQuantile") ? "quantile" : node.op))}}));
}

/// ranks_backward(X, dy, W, p): the adjoint of X of the order statistic that attribute "of" names. It goes to
/// the cells whose values the statistic has taken, half to each of two; cells that are equal share it, each
/// as often as it counts.
///
/// Shapes:  as of quantile, median, interQuartileMean; W and p may be left out; the result is n x 1.
/// Value:   NaN in all cells if a cell that counts is.
/// Errors:  as quantile.
/// Rows:    whole; of quantiles, on several ranks in stages, in which X stays where it is.
/// Cost:    sorts a copy of X.
extern constexpr Operator kRanksBackward = {.name = "ranks_backward",
                                            .parameters = "X dy W? p?",
                                            .min_inputs = 2,
                                            .max_inputs = 4,
                                            .infer = InferRanksBackward,
                                            .input_use = UseOfInput,
                                            .staged = &kStaged,
                                            .run = RunRanksBackward,
                                            .may_fail = true,
                                            .working_bytes = RanksWorkingBytes};

}  // namespace heddle::ops
