// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "ops/base/parallel.h"
#include "ops/base/stages.h"
#include "ops/cells/storage.h"
#include "ops/reduction/exact_sum.h"
#include "ops/statistics/ranked_windows.h"
#include "ops/statistics/ranks.h"

namespace heddle::ops {
namespace {

constexpr ColumnOfRanks kColumn{.name = "interQuartileMean", .weights = 1};

Result<ValueInfo> InferInterQuartileMean(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(CheckRankedColumns(context, kColumn.name, kColumn.weights));
  return ValueInfo::OfScalar(ValueType::kDouble);
}

void AddPart(double amount, double value, ExactSum* sum) {
  if (amount != 0) sum->Add(amount * value);
}

double MeanOf(const RankedColumn& column) {
  ExactSum sum;
  column.ForMiddleHalf([&](size_t place, double amount) { AddPart(amount, column.values[place], &sum); });
  return sum.Rounded() / (0.5 * column.total);
}

Result<Value> RunInterQuartileMean(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const RankedColumn column, RankColumn(call, kColumn.name, kColumn.weights));
  return Value(Scalar(column.has_nan ? std::numeric_limits<double>::quiet_NaN() : MeanOf(column)));
}

// ---- On several ranks: all find the values at both ends of the middle half, add up what they have between
// them, and add up these sums, which are exact.

enum StageNumber { kFindEnds = kWindowStages, kSum, kFinish };

// A value at an end, and the weight of all values up to it, as a row that goes to all ranks.
struct End {
  static constexpr int64_t kColumns = 4;
  double value;
  int32_t rank;
  double before;  // Among the values of this rank.
  double through;

  static End OfRow(const double* row) { return {row[0], static_cast<int32_t>(row[1]), row[2], row[3]}; }
  void Write(double* row) const {
    row[0] = value;
    row[1] = rank;
    row[2] = before;
    row[3] = through;
  }
};

// The ranks of the values at both ends.
std::vector<std::pair<double, double>> RanksOfEnds(double total) {
  const double first = std::ceil(0.25 * total), last = std::ceil(0.75 * total);
  return {{first, first}, {last, last}};
}

Status FindEnds(const StageCall& call, const RankedTotals& totals, std::span<Value> outputs) {
  std::vector<End> ends;
  if (!totals.has_nan) {
    WindowReader reader = WindowsOf(call, totals);
    const auto ranks = RanksOfEnds(totals.total);
    const auto [first, last] = OwnPlaces(static_cast<int64_t>(ranks.size()), call.rank, call.ranks());
    if (!totals.is_exact()) {
      // The mean itself, in place of an end.
      if (call.rank == 0) ends.push_back({MeanOf(ColumnOf(reader.Next())), 0, 0, 0});
    } else {
      for (int64_t i = first; i < last; ++i) {
        const double place = ranks[static_cast<size_t>(i)].first - 1;
        const MergedWindow window = reader.Next();
        const GlobalElement& found = window.At(place);
        ends.push_back({found.keys[0], found.rank, found.before, window.WeightThrough(place)});
      }
    }
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix rows, Matrix::Dense(static_cast<int64_t>(ends.size()), End::kColumns));
  for (size_t i = 0; i < ends.size(); ++i) ends[i].Write(rows.mutable_data() + i * End::kColumns);
  outputs[2] = Value(std::move(rows));
  return OkStatus();
}

// Calls body(begin, end, part) for parts of [0, count) on all threads, each with a Part of its own.
template <typename Part, typename Body>
std::vector<Part> InParts(int64_t count, const Body& body) {
  const int64_t parts = ParallelThreads();
  std::vector<Part> of_part(static_cast<size_t>(parts));
  ParallelFor(parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p)
      body(count * p / parts, count * (p + 1) / parts, of_part[static_cast<size_t>(p)]);
  });
  return of_part;
}

// What this rank has behind the value at the first end, up to that at the last, of sorted values with
// weights.
ExactSum SumOfSorted(const StageCall& call, const RankedTotals& totals, const Matrix& sorted,
                     const End& first, const End& last) {
  const WeightedValues values(sorted);
  const auto count_through = [&](const End& end) {
    return CountBefore(values, totals.order(), call.rank, {{end.value}, end.rank, end.before}) +
           (call.rank == end.rank ? 1 : 0);
  };
  const int64_t from = count_through(first);
  ExactSum sum;
  const auto add = [&](int64_t begin, int64_t end, ExactSum& part) {
    for (int64_t i = from + begin; i < from + end; ++i) AddPart(values.Weight(i), values.Key(i, 0), &part);
  };
  for (const ExactSum& part : InParts<ExactSum>(count_through(last) - from, add)) sum.Add(part);
  return sum;
}

// The same of cells that are not sorted and count once each: those between the ends, and as many of those
// that equal an end as are in front of it on this rank.
ExactSum SumOfCells(const StageCall& call, const Matrix& cells, const End& first, const End& last) {
  const uint64_t first_key = ExactSortKey(first.value), last_key = ExactSortKey(last.value);
  struct Part {
    int64_t below_first = 0, through_first = 0, below_last = 0, through_last = 0;
    ExactSum between;
  };
  const auto look = [&](int64_t begin, int64_t end, Part& part) {
    for (int64_t i = begin; i < end; ++i) {
      const uint64_t key = ExactSortKey(cells.data()[i]);
      part.below_first += key < first_key;
      part.through_first += key <= first_key;
      part.below_last += key < last_key;
      part.through_last += key <= last_key;
      if (key > first_key && key < last_key) part.between.Add(cells.data()[i]);
    }
  };
  Part all;
  for (const Part& part : InParts<Part>(cells.rows(), look)) {
    all.below_first += part.below_first;
    all.through_first += part.through_first;
    all.below_last += part.below_last;
    all.through_last += part.through_last;
    all.between.Add(part.between);
  }
  const auto count_through = [&](const End& end, int64_t below, int64_t through) {
    if (call.rank == end.rank) return static_cast<int64_t>(end.before) + 1;
    return call.rank < end.rank ? through : below;
  };
  const auto add = [&](double value, int64_t times) {
    for (int64_t i = 0; i < times; ++i) all.between.Add(value);
  };
  const int64_t from = count_through(first, all.below_first, all.through_first);
  const int64_t to = count_through(last, all.below_last, all.through_last);
  if (first_key == last_key) {
    add(first.value, to - from);
  } else {
    add(first.value, all.through_first - from);
    add(last.value, to - all.below_last);
  }
  return all.between;
}

Status SumMiddle(const StageCall& call, const RankedTotals& totals, std::span<Value> outputs) {
  const bool has_ends = !totals.has_nan && totals.is_exact();
  HEDDLE_ASSIGN_OR_RETURN(Matrix row, Matrix::Dense(has_ends ? 1 : 0, ExactSum::kCells));
  if (has_ends) {
    const double* const ends = call.Received(2).matrix().data();
    const End first = End::OfRow(ends), last = End::OfRow(ends + End::kColumns);
    ExactSum sum;
    if (totals.is_weighted) {
      sum = SumOfSorted(call, totals, call.Received(1).matrix(), first, last);
    } else {
      HEDDLE_ASSIGN_OR_RETURN(const Matrix cells, AsDense(call.inputs[0]->matrix()));
      sum = SumOfCells(call, cells, first, last);
    }
    if (call.rank == first.rank) AddPart(first.through - 0.25 * totals.total, first.value, &sum);
    if (call.rank == last.rank) AddPart(0.75 * totals.total - last.through, last.value, &sum);
    sum.Write(row.mutable_data());
  }
  outputs[1] = call.Received(2);
  outputs[2] = Value(std::move(row));
  return OkStatus();
}

double Finish(const StageCall& call, const RankedTotals& totals) {
  if (totals.has_nan) return std::numeric_limits<double>::quiet_NaN();
  if (!totals.is_exact()) return call.Received(1).matrix().data()[0];
  const Matrix& sums = call.Received(2).matrix();
  ExactSum sum;
  for (int64_t i = 0; i < sums.rows(); ++i) sum.Add(ExactSum::Read(sums.data() + i * sums.columns()));
  return sum.Rounded() / (0.5 * totals.total);
}

Status RunStage(const StageCall& call, std::span<Value> outputs) {
  if (call.stage < kWindowStages) return FindWindows(call, kColumn, RanksOfEnds, outputs);
  const RankedTotals totals = RankedTotals::OfRow(call.Received(0).matrix());
  if (call.stage == kFinish) {
    outputs[0] = Value(Scalar(Finish(call, totals)));
    return OkStatus();
  }
  outputs[0] = call.Received(0);
  if (call.stage == kSum) return SumMiddle(call, totals, outputs);
  outputs[1] = call.Received(1);
  return FindEnds(call, totals, outputs);
}

constexpr Reach kWithAll[] = {Reach::kHere, Reach::kHere, Reach::kAll};
constexpr Stage kStages[] = {kDrawnStage,
                             kNarrowStage,
                             kSampleStage,
                             kWindowStage,
                             {.outputs = kWithAll},
                             {.outputs = kWithAll, .reads_inputs = true},
                             {}};
constexpr StagedForm kStaged = {.stages = kStages, .result = StagedResult::kEach, .run = RunStage};

double SortedWorkingBytes(const Node&, std::span<const ValueInfo> inputs) {
  return 5 * sizeof(double) * static_cast<double>(inputs[0].shape.rows);
}

}  // namespace

/// interQuartileMean(X), interQuartileMean(X, W): the mean of the middle half of a column, X[i] counted W[i]
/// times; values at the ranks N/4 and 3N/4 count with the part of them that is inside.
///
/// Shapes:  X and W are n x 1; a number.
/// Value:   NaN if a cell that counts is.
/// Errors:  as quantile.
/// Error:   the terms, values times the part of them that counts, are rounded once each and added up exactly.
/// Rows:    whole; on several ranks in stages, in which X stays where it is.
/// Cost:    sorts a copy of X.
extern constexpr Operator kInterQuartileMean = {.name = "interQuartileMean",
                                                .form = CallForm::kPositional,
                                                .parameters = "X W?",
                                                .min_inputs = 1,
                                                .max_inputs = 2,
                                                .infer = InferInterQuartileMean,
                                                .input_use = AllByRows,
                                                .staged = &kStaged,
                                                .run = RunInterQuartileMean,
                                                .may_fail = true,
                                                .working_bytes = SortedWorkingBytes,
                                                .adjoints = "*; 0",
                                                .differentiate = DifferentiateRanks};

}  // namespace heddle::ops
