// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "ops/base/operator.h"
#include "ops/base/stages.h"
#include "ops/reduction/wide_number.h"

// Statistics that are sums over cells: mean, moment and cov of weighted or centred cells. The sums are in the
// order of sum() (docs/numerics.md, section 3), so that they have the bits of the same formula written in a
// script. Sums of finite terms beyond the largest double are told, so that their means are right.
namespace heddle::ops {

/// A term of a sum, of cell k of each of the matrices.
using TermOfCells = std::function<double(const double* const* cells, int64_t k)>;

/// A statistic of the matrices among the first inputs of a call, which have one shape. The terms of its
/// second round may depend on the sums of the first; it has no second round where that is empty.
struct StatisticOfSums {
  std::string_view name;                           ///< As messages have it.
  size_t (*matrices)(const Node& node) = nullptr;  ///< How many of the inputs they are.
  /// The terms of the first round; an error for what is wrong with the other inputs.
  Result<std::vector<TermOfCells>> (*first)(const KernelCall& call) = nullptr;
  std::vector<TermOfCells> (*second)(const KernelCall& call, double cells,
                                     std::span<const WideNumber> sums) = nullptr;
  /// The statistic from the sums of both rounds, behind each other, and the number of cells.
  double (*result)(const KernelCall& call, double cells, std::span<const WideNumber> sums) = nullptr;
};

/// The statistic of whole matrices. kFailedPrecondition, naming it, if their shapes differ, or if they have
/// no cells.
Result<Value> RunStatistic(const KernelCall& call, const StatisticOfSums& statistic);
/// On several ranks: each adds up the terms of its rows, and every rank has the result.
Status RunStatisticStage(const StageCall& call, const StatisticOfSums& statistic, std::span<Value> outputs);

constexpr Reach kFirstSums[] = {Reach::kAll}, kBothSums[] = {Reach::kHere, Reach::kAll};
constexpr Stage kStatisticStages[] = {{.outputs = kFirstSums, .reads_inputs = true},
                                      {.outputs = kBothSums, .reads_inputs = true},
                                      {.reads_inputs = true}};
constexpr StagedForm StatisticForm(Status (*run)(const StageCall& call, std::span<Value> outputs)) {
  return {.stages = kStatisticStages, .result = StagedResult::kEach, .needs_granules = true, .run = run};
}
/// For Operator::input_use.
inline InputUse MatricesByRows(const Node&, std::span<const ValueInfo> inputs, int i) {
  return inputs[static_cast<size_t>(i)].IsMatrix() ? InputUse::kRows : InputUse::kWhole;
}

/// kInvalidArgument unless the inputs [0, count) can be matrices of one shape.
Status CheckOneShape(const InferContext& context, std::string_view name, size_t count);

}  // namespace heddle::ops
