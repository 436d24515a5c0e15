// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "core/values/sizes.h"
#include "ops/base/arguments.h"
#include "ops/base/parallel.h"
#include "ops/base/row_rules.h"
#include "ops/base/stages.h"
#include "ops/catalog.h"
#include "ops/cells/join_columns.h"
#include "ops/cells/move_cells.h"
#include "ops/cells/storage.h"

namespace heddle::ops {
namespace {

enum Input { kGroups, kBins, kWeights, kGroupCount, kBinCount };

// Sums of some columns should stay in the second-level cache while rows add to them.
constexpr int64_t kMostSumBytes = 256 << 10;
constexpr int64_t kRowsBetweenPolls = 1 << 16;
// Rows that a thread sorts.
constexpr int64_t kLeastRowsOfRun = 1 << 15;

// `what` has a row for each row of the bins.
Status CheckRows(const Shape& bins, const Shape& other, std::string_view what, StatusCode code) {
  if (bins.rows == kUnknown || other.rows == kUnknown || bins.rows == other.rows) return OkStatus();
  return Status(code, fmt::format("histograms: the bins are {} but the {} are {}", bins, what, other))
      .WithNote(fmt::format("the {} have as many rows as the bins", what));
}

Status CheckShapes(const Shape& groups, const Shape& bins, const Shape& weights, StatusCode code) {
  if (groups.columns != kUnknown && groups.columns != 1)
    return Status(code, fmt::format("histograms: the groups must be a column, not {}", groups));
  HEDDLE_RETURN_IF_ERROR(CheckRows(bins, groups, "groups", code));
  return CheckRows(bins, weights, "weights", code);
}

int64_t Times(int64_t a, int64_t b) {
  if (a == kUnknown || b == kUnknown) return kUnknown;
  return b != 0 && a > kMostLength / b ? kMostLength + 1 : a * b;
}

Result<Shape> ShapeOf(int64_t groups, int64_t bins, int64_t columns, int64_t weights, StatusCode code) {
  const Shape shape{Times(groups, weights), Times(bins, columns)};
  if (shape.rows > kMostLength || shape.columns > kMostLength)
    return Status(code, fmt::format("histograms: {} weights of {} groups, {} columns of {} bins are too many",
                                    weights, groups, columns, bins))
        .WithNote(fmt::format("a matrix has at most {} rows and columns", kMostLength));
  return shape;
}

Result<ValueInfo> InferHistograms(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, kGroups, "argument 1"));
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, kBins, "argument 2"));
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, kWeights, "argument 3"));
  const Shape &groups = context.inputs[kGroups].shape, &bins = context.inputs[kBins].shape;
  const Shape& weights = context.inputs[kWeights].shape;
  HEDDLE_RETURN_IF_ERROR(CheckShapes(groups, bins, weights, StatusCode::kInvalidArgument));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t group_count,
                          InferSize(context, kGroupCount, "the number of groups", kUnknown));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t bin_count,
                          InferSize(context, kBinCount, "the number of bins", kUnknown));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(group_count, bin_count, bins.columns, weights.columns,
                                                     StatusCode::kResourceExhausted));
  return ValueInfo::OfMatrix(shape);
}

// The rows that have a group in the order of their groups, of a group in their order: what all columns of the
// bins have in common.
struct GroupedRows {
  Matrix places;   // Of each row; -1: it has no group.
  Matrix starts;   // Group g, from 0, has the places from starts[g] to starts[g + 1].
  Matrix weights;  // By place.

  static Result<GroupedRows> Of(const KernelCall& call, int64_t groups);
  int64_t StartOf(int64_t group) const { return static_cast<int64_t>(starts.data()[group]); }
  int64_t count() const { return StartOf(starts.rows() - 1); }

 private:
  Status Sort(const Matrix& groups, int64_t count, const std::atomic<bool>* cancelled);
};

// A counting sort. Threads count and place a run of rows each, where there are few groups beside the rows.
Status GroupedRows::Sort(const Matrix& groups, int64_t count, const std::atomic<bool>* cancelled) {
  const double end = static_cast<double>(count) + 1;
  const int64_t rows = groups.rows(), group_ends = count + 1;
  const int64_t runs =
      std::clamp<int64_t>(rows / std::max(kLeastRowsOfRun, group_ends), 1, ParallelThreads());
  HEDDLE_ASSIGN_OR_RETURN(places, Matrix::Dense(rows, 1));
  HEDDLE_ASSIGN_OR_RETURN(starts, Matrix::Dense(group_ends, 1));
  double* const place_of = places.mutable_data();
  // Of each run the rows of each group, 0: none; then where the next one goes.
  std::vector<int64_t> next(static_cast<size_t>(runs * group_ends));
  const auto for_rows = [&](const auto& body) {
    ParallelFor(runs, 1, [&](int64_t first, int64_t last) {
      for (int64_t run = first; run < last; ++run)
        for (int64_t i = rows * run / runs; i < rows * (run + 1) / runs; ++i) {
          if (i % kRowsBetweenPolls == 0 && IsCancelled(cancelled)) return;
          body(i, next.data() + run * group_ends);
        }
    });
  };
  for_rows([&](int64_t i, int64_t* counts) {
    const double group = groups.data()[i];
    const int64_t number = group >= 1 && group < end ? static_cast<int64_t>(group) : 0;
    place_of[i] = static_cast<double>(number);
    ++counts[number];
  });
  if (IsCancelled(cancelled)) return Cancelled("cancelled");
  int64_t place = 0;
  for (int64_t group = 1; group < group_ends; ++group) {
    starts.mutable_data()[group - 1] = static_cast<double>(place);
    for (int64_t run = 0; run < runs; ++run)
      place += std::exchange(next[static_cast<size_t>(run * group_ends + group)], place);
  }
  starts.mutable_data()[count] = static_cast<double>(place);
  for_rows([&](int64_t i, int64_t* of_groups) {
    const auto group = static_cast<int64_t>(place_of[i]);
    place_of[i] = group == 0 ? -1 : static_cast<double>(of_groups[group]++);
  });
  return IsCancelled(cancelled) ? Cancelled("cancelled") : OkStatus();
}

Result<GroupedRows> GroupedRows::Of(const KernelCall& call, int64_t groups) {
  const Matrix& weights = call.inputs[kWeights]->matrix();
  GroupedRows rows;
  HEDDLE_RETURN_IF_ERROR(rows.Sort(call.inputs[kGroups]->matrix(), groups, call.context.cancelled));
  HEDDLE_ASSIGN_OR_RETURN(rows.weights, Matrix::Dense(rows.count(), weights.columns()));
  double* const out = rows.weights.mutable_data();
  ParallelFor(weights.rows(), RowGrain(weights.columns()), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      if (const auto place = static_cast<int64_t>(rows.places.data()[i]); place >= 0)
        std::copy_n(weights.data() + i * weights.columns(), weights.columns(),
                    out + place * weights.columns());
  });
  return rows;
}

// What is added up: some columns of the bins, and to which sums.
struct Sums {
  int64_t first_column = 0, columns = 0;
  int64_t groups = 0, bins = 0;
  double* out = nullptr;  // Those of rows before these, or zeros.
};

// The bins of some columns as small whole numbers, in the order of the groups. A task adds up one group,
// sequentially, to the sums of a run of columns, which stay in the second-level cache whatever the number of
// groups is. Code is the type of the bins.
template <typename Code>
class Histograms {
 public:
  Histograms(const KernelCall& call, const GroupedRows& rows, const Sums& sums)
      : cancelled_(call.context.cancelled),
        rows_(rows),
        first_column_(sums.first_column),
        columns_(sums.columns),
        weight_count_(rows.weights.columns()),
        group_count_(sums.groups),
        bin_count_(sums.bins),
        out_(sums.out) {
    CopyBins(call.inputs[kBins]->matrix());
    // Few groups: threads share columns as well.
    const int64_t threads = ParallelThreads();
    const int64_t runs = group_count_ < kGroupsOfThread * threads ? threads : 1;
    const int64_t bytes_of_column = (bin_count_ + 1) * weight_count_ * static_cast<int64_t>(sizeof(double));
    width_ = std::clamp<int64_t>(kMostSumBytes / bytes_of_column, 1, (columns_ + runs - 1) / runs);
    runs_ = (columns_ + width_ - 1) / width_;
  }

  void Run() const {
    ParallelFor(group_count_ * runs_, 1, [&](int64_t begin, int64_t end) {
      std::vector<double> sums;
      for (int64_t task = begin; task < end && !IsCancelled(cancelled_); ++task)
        RunTask(task / runs_, task % runs_ * width_, &sums);
    });
  }

 private:
  static constexpr int64_t kGroupsOfThread = 8;

  void CopyBins(const Matrix& bins) {
    const double end = static_cast<double>(bin_count_) + 1;
    // Not cleared: the threads that write them touch their pages first.
    codes_ = std::make_unique_for_overwrite<Code[]>(static_cast<size_t>(rows_.count() * columns_));
    ParallelFor(bins.rows(), RowGrain(columns_), [&](int64_t begin, int64_t row_end) {
      if (IsCancelled(cancelled_)) return;
      for (int64_t i = begin; i < row_end; ++i) {
        const auto place = static_cast<int64_t>(rows_.places.data()[i]);
        if (place < 0) continue;
        const double* const keys = bins.data() + i * bins.columns() + first_column_;
        Code* const codes = codes_.get() + place * columns_;
        for (int64_t j = 0; j < columns_; ++j)
          codes[j] = static_cast<Code>(keys[j] >= 1 && keys[j] < end ? static_cast<int64_t>(keys[j]) - 1
                                                                     : bin_count_);
      }
    });
  }

  void RunTask(int64_t group, int64_t first, std::vector<double>* sums) const {
    const int64_t begin = rows_.StartOf(group), end = rows_.StartOf(group + 1);
    if (begin == end) return;
    const int64_t count = std::min(width_, columns_ - first);
    sums->assign(static_cast<size_t>(count * (bin_count_ + 1) * weight_count_), 0);
    Read(group, first, count, sums->data());
    switch (weight_count_) {
      case 1: AddRows<1>(begin, end, first, count, sums->data()); break;
      case 2: AddRows<2>(begin, end, first, count, sums->data()); break;
      case 3: AddRows<3>(begin, end, first, count, sums->data()); break;
      default: AddRows<0>(begin, end, first, count, sums->data());
    }
    Write(group, first, count, sums->data());
  }

  // kWeightCount is the number of weights, 0 for any. A column has one bin more, for all that counts nowhere.
  template <int kWeightCount>
  void AddRows(int64_t begin, int64_t end, int64_t first, int64_t count, double* sums) const {
    const int64_t weight_count = kWeightCount > 0 ? kWeightCount : weight_count_;
    const int64_t sums_of_column = (bin_count_ + 1) * weight_count;
    for (int64_t r = begin; r < end; ++r) {
      if ((r - begin) % kRowsBetweenPolls == 0 && IsCancelled(cancelled_)) return;
      const Code* const codes = codes_.get() + r * columns_ + first;
      const double* const weights = rows_.weights.data() + r * weight_count;
      double* column = sums;
      for (int64_t j = 0; j < count; ++j, column += sums_of_column) {
        double* const cell = column + static_cast<int64_t>(codes[j]) * weight_count;
        for (int64_t s = 0; s < weight_count; ++s) cell[s] += weights[s];
      }
    }
  }

  // From the order of the result to that of the sums.
  void Read(int64_t group, int64_t first, int64_t count, double* sums) const {
    for (int64_t s = 0; s < weight_count_; ++s)
      for (int64_t j = 0; j < count; ++j) {
        const double* const from = out_ + ((s * group_count_ + group) * columns_ + first + j) * bin_count_;
        double* const to = sums + j * (bin_count_ + 1) * weight_count_ + s;
        for (int64_t bin = 0; bin < bin_count_; ++bin) to[bin * weight_count_] = from[bin];
      }
  }
  // From the order of the sums to that of the result.
  void Write(int64_t group, int64_t first, int64_t count, const double* sums) const {
    for (int64_t s = 0; s < weight_count_; ++s)
      for (int64_t j = 0; j < count; ++j) {
        const double* const from = sums + j * (bin_count_ + 1) * weight_count_ + s;
        double* const to = out_ + ((s * group_count_ + group) * columns_ + first + j) * bin_count_;
        for (int64_t bin = 0; bin < bin_count_; ++bin) to[bin] = from[bin * weight_count_];
      }
  }

  const std::atomic<bool>* cancelled_;
  const GroupedRows& rows_;
  int64_t first_column_, columns_, weight_count_, group_count_, bin_count_;
  double* out_;
  int64_t width_ = 1, runs_ = 1;  // Of columns.
  std::unique_ptr<Code[]> codes_;
};

// How many there are, and the shape of the result.
struct Counts {
  int64_t groups = 0, bins = 0;
  Shape shape;
};
Result<Counts> CountsOf(const KernelCall& call) {
  Counts counts;
  HEDDLE_ASSIGN_OR_RETURN(counts.groups, GivenSize(call, kGroupCount, "the number of groups", 0));
  HEDDLE_ASSIGN_OR_RETURN(counts.bins, GivenSize(call, kBinCount, "the number of bins", 0));
  HEDDLE_ASSIGN_OR_RETURN(counts.shape,
                          ShapeOf(counts.groups, counts.bins, call.inputs[kBins]->matrix().columns(),
                                  call.inputs[kWeights]->matrix().columns(), StatusCode::kResourceExhausted));
  return counts;
}

Status AddUp(const KernelCall& call, const GroupedRows& rows, const Sums& sums) {
  if (sums.bins < std::numeric_limits<uint16_t>::max())
    Histograms<uint16_t>(call, rows, sums).Run();
  else
    Histograms<int64_t>(call, rows, sums).Run();
  return IsCancelled(call.context.cancelled) ? Cancelled("cancelled") : OkStatus();
}

Result<Value> RunHistograms(const KernelCall& call) {
  const Matrix& bins = call.inputs[kBins]->matrix();
  HEDDLE_RETURN_IF_ERROR(CheckShapes(call.inputs[kGroups]->matrix().shape(), bins.shape(),
                                     call.inputs[kWeights]->matrix().shape(),
                                     StatusCode::kFailedPrecondition));
  HEDDLE_ASSIGN_OR_RETURN(const Counts counts, CountsOf(call));
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, FilledMatrix(counts.shape.rows, counts.shape.columns, 0));
  if (result.cells() == 0) return Value(std::move(result));
  HEDDLE_ASSIGN_OR_RETURN(const GroupedRows rows, GroupedRows::Of(call, counts.groups));
  HEDDLE_RETURN_IF_ERROR(AddUp(call, rows,
                               {.columns = bins.columns(),
                                .groups = counts.groups,
                                .bins = counts.bins,
                                .out = result.mutable_data()}));
  return Value(std::move(result));
}

// ---- On several ranks. A cell is one chain over all rows, so a rank goes on from the sums of the rank
// before. Each puts its rows into the order of their groups, all at the same time. Columns are then taken in
// blocks, a stage each: while one rank is at a block, the one before is at the next. The last rank has the
// sums of all rows, of which it sends every rank its rows.

constexpr size_t kBlocks = 8;

// What a stage of a block gets and hands on: the grouped rows, then the sums of the blocks that are done.
enum Held { kPlaces, kStarts, kOrderedWeights, kFirstBlock };

Status GroupRows(const StageCall& call, std::span<Value> outputs) {
  const KernelCall whole = call.WholeCall();
  HEDDLE_ASSIGN_OR_RETURN(const Counts counts, CountsOf(whole));
  HEDDLE_ASSIGN_OR_RETURN(GroupedRows rows, GroupedRows::Of(whole, counts.groups));
  outputs[kPlaces] = Value(std::move(rows.places));
  outputs[kStarts] = Value(std::move(rows.starts));
  outputs[kOrderedWeights] = Value(std::move(rows.weights));
  return OkStatus();
}

Status AddBlock(const StageCall& call, size_t block, std::span<Value> outputs) {
  const KernelCall whole = call.WholeCall();
  HEDDLE_ASSIGN_OR_RETURN(const Counts counts, CountsOf(whole));
  for (size_t held = 0; held < kFirstBlock + block; ++held) outputs[held] = call.Received(held);
  const auto all = static_cast<int64_t>(whole.inputs[kBins]->matrix().columns());
  const auto begin = static_cast<int64_t>(block) * all / static_cast<int64_t>(kBlocks);
  const auto end = static_cast<int64_t>(block + 1) * all / static_cast<int64_t>(kBlocks);
  HEDDLE_ASSIGN_OR_RETURN(Matrix sums, Matrix::Dense(counts.shape.rows, (end - begin) * counts.bins));
  if (call.before == nullptr)
    std::fill_n(sums.mutable_data(), sums.cells(), 0.0);
  else
    std::copy_n(call.before->matrix().data(), sums.cells(), sums.mutable_data());
  const GroupedRows rows{.places = outputs[kPlaces].matrix(),
                         .starts = outputs[kStarts].matrix(),
                         .weights = outputs[kOrderedWeights].matrix()};
  if (sums.cells() > 0)
    HEDDLE_RETURN_IF_ERROR(AddUp(whole, rows,
                                 {.first_column = begin,
                                  .columns = end - begin,
                                  .groups = counts.groups,
                                  .bins = counts.bins,
                                  .out = sums.mutable_data()}));
  const bool is_last = call.rank + 1 == call.ranks();
  outputs[kFirstBlock + block] = is_last ? Value(sums) : Value(Matrix());
  outputs[kFirstBlock + block + 1] = is_last ? Value(Matrix()) : Value(std::move(sums));
  return OkStatus();
}

// The last rank sends every rank its rows of all blocks, side by side.
Status SendRows(const StageCall& call, std::span<Value> outputs) {
  if (call.rank + 1 < call.ranks()) return OkStatus();
  for (int32_t rank = 0; rank < call.ranks(); ++rank) {
    std::vector<Matrix> blocks;
    for (size_t block = 0; block < kBlocks; ++block)
      blocks.push_back(call.Received(kFirstBlock + block)
                           .matrix()
                           .Rows(call.result_rows.Begin(rank), call.result_rows.End(rank)));
    HEDDLE_ASSIGN_OR_RETURN(Matrix rows, JoinColumns(std::move(blocks), Format::kDense));
    outputs[static_cast<size_t>(rank)] = Value(std::move(rows));
  }
  return OkStatus();
}

Status RunHistogramsStage(const StageCall& call, std::span<Value> outputs) {
  const auto stage = static_cast<size_t>(call.stage);
  if (stage == 0) return GroupRows(call, outputs);
  if (stage <= kBlocks) return AddBlock(call, stage - 1, outputs);
  if (stage == kBlocks + 1) return SendRows(call, outputs);
  outputs[0] = call.Received(0);
  return OkStatus();
}

// Of block b the grouped rows, the sums of the blocks before, its own, and those for the next rank.
constexpr std::array<Reach, kFirstBlock + kBlocks + 1> kSums = [] {
  std::array<Reach, kFirstBlock + kBlocks + 1> outputs{};
  outputs.fill(Reach::kHere);
  outputs.back() = Reach::kNext;
  return outputs;
}();
constexpr Reach kRowsOfSums[] = {Reach::kFromLast};
constexpr std::array<Stage, kBlocks + 3> kStages = [] {
  std::array<Stage, kBlocks + 3> stages{};
  stages[0] = {.outputs = std::span(kSums).first(kFirstBlock), .reads_inputs = true};
  for (size_t block = 0; block < kBlocks; ++block)
    stages[block + 1] = {.outputs = std::span(kSums).last(kFirstBlock + block + 2), .reads_inputs = true};
  stages[kBlocks + 1] = {.outputs = kRowsOfSums};
  return stages;
}();

InputUse RowsOfCells(const Node&, std::span<const ValueInfo>, int i) {
  return i <= kWeights ? InputUse::kRows : InputUse::kWhole;
}

// From rank to rank, and from the last to all.
double MovedBytes(const Node& node, std::span<const ValueInfo>, const RankGrid&) {
  return 2 * static_cast<double>(KnownBytes(node.info));
}

constexpr StagedForm kStaged = {.stages = kStages,
                                .result = StagedResult::kRows,
                                .applies = IsSized,
                                .moved_bytes = MovedBytes,
                                .run = RunHistogramsStage};

// It adds every weight once for each column, at a place that is not foreseen.
Cost HistogramsCost(const Node& node, std::span<const ValueInfo> inputs) {
  const Shape &bins = inputs[kBins].shape, &weights = inputs[kWeights].shape;
  constexpr double kWorkOfAdding = 4;
  const double keys = static_cast<double>(bins.rows) * static_cast<double>(bins.columns);
  const double cells =
      static_cast<double>(node.info.shape.rows) * static_cast<double>(node.info.shape.columns);
  return {.work = keys * (kWorkOfAdding + static_cast<double>(weights.columns)),
          .bytes = sizeof(double) * (keys + cells)};
}

// The rows in the order of their groups.
double HistogramsWorkingBytes(const Node&, std::span<const ValueInfo> inputs) {
  const Shape &bins = inputs[kBins].shape, &weights = inputs[kWeights].shape;
  const double rows = static_cast<double>(bins.rows);
  return rows * (sizeof(int64_t) + sizeof(uint16_t) * static_cast<double>(bins.columns) +
                 sizeof(double) * static_cast<double>(weights.columns));
}

}  // namespace

/// histograms(G, B, W, k, d): for each group of rows and each column of B how much weight every bin has. Its
/// cells are those of table(G, B[,j], W[,s], k, d), the columns j side by side, the weights s one under
/// another: cell ((s-1) k + g, (j-1) d + b) is the sum of W[i,s] over the rows i with trunc(G[i]) = g and
/// trunc(B[i,j]) = b.
///
/// Shapes:  G n x 1, B n x m, W n x c; the result is c k x m d. Keys below 1, above k or d, and NaN count
///          nowhere (in table() a key below 1 is an error).
/// Order:   the weights of a cell are added in the order of the rows, from +0.0, in one chain.
/// Error:   |result - exact| <= n * eps * sum|w| a cell.
/// Cost:    copies B to small numbers, in the order of groups; then an addition a cell of B and weight.
///          Threads share groups, and columns where groups are few.
/// Rows:    several ranks add to the same sums one after the other, in turns by blocks of columns.
extern constexpr Operator kHistograms = {.name = "histograms",
                                         .form = CallForm::kPositional,
                                         .parameters = "G B W k d",
                                         .min_inputs = 5,
                                         .max_inputs = 5,
                                         .infer = InferHistograms,
                                         .input_use = RowsOfCells,
                                         .staged = &kStaged,
                                         .cost = HistogramsCost,
                                         .run = RunHistograms,
                                         .may_fail = true,
                                         .storages = Storages::kDense,
                                         .working_bytes = HistogramsWorkingBytes};

}  // namespace heddle::ops
