// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/base/parallel.h"
#include "ops/neural/cell_types.h"
#include "ops/neural/channels.h"

namespace heddle::ops {

Status CheckChannels(std::string_view op, Shape x, Shape gamma, StatusCode code) {
  if (gamma.columns != kUnknown && gamma.columns != 1)
    return Status(code, fmt::format("{}: gamma must be a column, not {}", op, gamma));
  if (gamma.rows == 0) return Status(code, fmt::format("{}: gamma has no rows", op));
  if (x.columns == kUnknown || gamma.rows == kUnknown || x.columns % gamma.rows == 0) return OkStatus();
  return Status(code,
                fmt::format("{}: {} columns cannot be divided among {} channels", op, x.columns, gamma.rows))
      .WithNote("gamma has a number for each channel, X as many columns for each");
}

Status CheckColumn(std::string_view op, std::string_view what, Shape column, Shape gamma, StatusCode code) {
  const bool rows_differ = column.rows != kUnknown && gamma.rows != kUnknown && column.rows != gamma.rows;
  if (!rows_differ && (column.columns == kUnknown || column.columns == 1)) return OkStatus();
  return Status(code, fmt::format("{}: {} is {} but gamma {}", op, what, column, gamma));
}

Result<std::vector<double>> SumsOfChannels(const Channels& channels, const Matrix& nodes,
                                           const std::atomic<bool>* cancelled) {
  HEDDLE_ASSIGN_OR_RETURN(const RootPayload root,
                          JoinNodes({.width = 8 * channels.channels, .cancelled = cancelled}, nodes));
  std::vector<double> sums;
  for (int64_t k = 0; k < channels.channels; ++k)
    sums.push_back(simd::FoldLanes(simd::Fold::kAdd, root.data() + 8 * k));
  return sums;
}

namespace {

enum Input { kImages, kGamma, kBeta, kMean, kVariance, kMode, kEpsilon, kMomentum };
enum Output { kResult, kNewMean, kNewVariance, kSavedMean, kSavedScale, kOutputs };

constexpr int64_t kTaskCells = 1 << 15;

Status CheckMode(const Scalar& mode, StatusCode code) {
  if (mode.IsString() && (mode.AsString() == "train" || mode.AsString() == "test")) return OkStatus();
  return Status(code, fmt::format("batch_norm2d: mode must be \"train\" or \"test\", not {}", mode.ToText()));
}

constexpr std::string_view kNames[] = {"X", "gamma", "beta", "ema_mean", "ema_var"};

template <typename ShapeOf>
Status CheckInputs(const ShapeOf& shape_of, StatusCode code) {
  HEDDLE_RETURN_IF_ERROR(CheckChannels("batch_norm2d", shape_of(kImages), shape_of(kGamma), code));
  for (const int i : {kBeta, kMean, kVariance})
    HEDDLE_RETURN_IF_ERROR(CheckColumn("batch_norm2d", kNames[i], shape_of(i), shape_of(kGamma), code));
  return OkStatus();
}

Result<std::vector<ValueInfo>> InferResults(const InferContext& context) {
  for (int i = kImages; i <= kVariance; ++i) HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, i, kNames[i]));
  HEDDLE_RETURN_IF_ERROR(RequireScalar(context, kMode, "mode"));
  HEDDLE_RETURN_IF_ERROR(RequireScalar(context, kEpsilon, "epsilon"));
  HEDDLE_RETURN_IF_ERROR(RequireScalar(context, kMomentum, "mu"));
  HEDDLE_RETURN_IF_ERROR(CheckInputs([&](int i) { return context.inputs[static_cast<size_t>(i)].shape; },
                                     StatusCode::kInvalidArgument));
  std::vector<ValueInfo> results(kOutputs, ValueInfo::OfMatrix({context.inputs[kGamma].shape.rows, 1}));
  results[kResult] = ValueInfo::OfMatrix(context.inputs[kImages].shape);
  return results;
}

Result<std::vector<ValueInfo>> InferBatchNorm(const InferContext& context) {
  HEDDLE_ASSIGN_OR_RETURN(std::vector<ValueInfo> results, InferResults(context));
  if (const Scalar* mode = KnownScalar(context, kMode))
    HEDDLE_RETURN_IF_ERROR(CheckMode(*mode, StatusCode::kInvalidArgument));
  return results;
}

Result<std::vector<ValueInfo>> InferMoments(const InferContext& context) {
  HEDDLE_ASSIGN_OR_RETURN(std::vector<ValueInfo> results, InferResults(context));
  results.erase(results.begin());
  return results;
}

bool TakesSingles(const KernelCall& call) {
  return HoldSingles(call, {kImages, kGamma, kBeta, kMean, kVariance});
}

// Mean and variance of the channels of the images, in two rounds of sums. Those of floats are doubles.
template <typename Cell>
class Moments {
 public:
  Moments(const KernelCall& call, const Channels& channels) : call_(call), channels_(channels) {}

  Result<Matrix> NodesOfCells() const {
    const Cell* const x = CellsOf<Cell>(call_, kImages);
    return NodesOfChannels(channels_, call_.context.cancelled,
                           [=](int64_t) { return [=](int64_t i) { return static_cast<double>(x[i]); }; });
  }
  Status SetMeans(const Matrix& nodes) {
    HEDDLE_ASSIGN_OR_RETURN(means_, SumsOfChannels(channels_, nodes, call_.context.cancelled));
    for (double& mean : means_) mean /= channels_.Count();
    return OkStatus();
  }
  Result<Matrix> NodesOfSquares() const {
    const Cell* const x = CellsOf<Cell>(call_, kImages);
    return NodesOfChannels(channels_, call_.context.cancelled, [&](int64_t channel) {
      return [x, mean = means_[static_cast<size_t>(channel)]](int64_t i) {
        const double deviation = static_cast<double>(x[i]) - mean;
        return deviation * deviation;
      };
    });
  }
  Status SetVariances(const Matrix& nodes) {
    HEDDLE_ASSIGN_OR_RETURN(variances_, SumsOfChannels(channels_, nodes, call_.context.cancelled));
    for (double& variance : variances_) variance /= channels_.Count();
    return OkStatus();
  }

  // All results but the first; in mode "test" nothing was set.
  Status Give(std::span<Value> results) const {
    const auto of_channel = [&](int i, int64_t k) { return static_cast<double>(CellsOf<Cell>(call_, i)[k]); };
    const double epsilon = NumberOr(call_, kEpsilon, 0), momentum = NumberOr(call_, kMomentum, 0);
    Matrix made[kOutputs];
    for (int i = kNewMean; i < kOutputs; ++i) {
      HEDDLE_ASSIGN_OR_RETURN(made[i], Matrix::Dense(channels_.channels, 1, kElementTypeOf<Cell>));
    }
    const auto give = [&](int i, int64_t k, double x) {
      made[i].mutable_data<Cell>()[k] = static_cast<Cell>(x);
    };
    for (int64_t k = 0; k < channels_.channels; ++k) {
      double mean = of_channel(kMean, k), variance = of_channel(kVariance, k);
      double new_mean = mean, new_variance = variance;
      if (!variances_.empty()) {
        mean = means_[static_cast<size_t>(k)];
        // The second is as in SystemDS: of the mean, too.
        new_mean = momentum * new_mean + (1 - momentum) * mean;
        new_variance = momentum * new_variance + (1 - momentum) * mean;
        variance = variances_[static_cast<size_t>(k)];
      }
      give(kNewMean, k, new_mean);
      give(kNewVariance, k, new_variance);
      give(kSavedMean, k, mean);
      give(kSavedScale, k, 1 / std::sqrt(variance + epsilon));
    }
    for (size_t i = kNewMean; i < kOutputs; ++i) results[i - kNewMean] = Value(std::move(made[i]));
    return OkStatus();
  }

 private:
  const KernelCall& call_;
  const Channels channels_;
  std::vector<double> means_, variances_;  // By channel.
};

// All results but the first.
template <typename Cell>
Status FindMoments(const KernelCall& call, bool trains, std::span<Value> results) {
  Moments<Cell> moments(call,
                        Channels::OfWhole(call.inputs[kImages]->matrix(), call.inputs[kGamma]->matrix()));
  if (trains) {
    HEDDLE_ASSIGN_OR_RETURN(const Matrix cells, moments.NodesOfCells());
    HEDDLE_RETURN_IF_ERROR(moments.SetMeans(cells));
    HEDDLE_ASSIGN_OR_RETURN(const Matrix squares, moments.NodesOfSquares());
    HEDDLE_RETURN_IF_ERROR(moments.SetVariances(squares));
  }
  return moments.Give(results);
}

// Floats by the arithmetic of floats.
template <typename Cell>
Result<Value> Normalize(const KernelCall& call, const Matrix& mean, const Matrix& scale) {
  const Matrix& x = call.inputs[kImages]->matrix();
  const int64_t count = scale.rows(), cells = x.columns() / count;
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(x.rows(), x.columns(), kElementTypeOf<Cell>));
  ParallelFor(x.rows() * count, kTaskCells / (cells + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t k = row % count;
      const Cell m = mean.data<Cell>()[k], s = scale.data<Cell>()[k], gamma = CellsOf<Cell>(call, kGamma)[k],
                 beta = CellsOf<Cell>(call, kBeta)[k];
      const Cell* const from = x.data<Cell>() + row * cells;
      Cell* const to = result.mutable_data<Cell>() + row * cells;
      for (int64_t i = 0; i < cells; ++i) to[i] = (from[i] - m) * s * gamma + beta;
    }
  });
  return Value(std::move(result));
}

template <typename Cell>
Status RunCells(const KernelCall& call, bool trains, std::span<Value> results) {
  HEDDLE_RETURN_IF_ERROR(FindMoments<Cell>(call, trains, results.subspan(kNewMean)));
  HEDDLE_ASSIGN_OR_RETURN(results[kResult],
                          Normalize<Cell>(call, results[kSavedMean].matrix(), results[kSavedScale].matrix()));
  return OkStatus();
}

Status RunBatchNorm(const KernelCall& call, std::span<Value> results) {
  HEDDLE_RETURN_IF_ERROR(CheckInputs([&](int i) { return call.inputs[static_cast<size_t>(i)]->shape(); },
                                     StatusCode::kFailedPrecondition));
  const Scalar& mode = call.inputs[kMode]->scalar();
  HEDDLE_RETURN_IF_ERROR(CheckMode(mode, StatusCode::kFailedPrecondition));
  const bool trains = mode.AsString() == "train";
  return TakesSingles(call) ? RunCells<float>(call, trains, results)
                            : RunCells<double>(call, trains, results);
}

Status RunMoments(const KernelCall& call, std::span<Value> results) {
  HEDDLE_RETURN_IF_ERROR(CheckInputs([&](int i) { return call.inputs[static_cast<size_t>(i)]->shape(); },
                                     StatusCode::kFailedPrecondition));
  const bool trains = BooleanOr(call, kMode, false);
  return TakesSingles(call) ? FindMoments<float>(call, trains, results)
                            : FindMoments<double>(call, trains, results);
}

// On several ranks sums of cells go to all, then sums of squares; of images each normalises its own. Nothing
// is sent in mode "test".
template <typename Cell>
Status RunStageOf(const StageCall& call, bool trains, std::span<Value> outputs) {
  const KernelCall whole = call.WholeCall();
  Moments<Cell> moments(whole, Channels::OfRank(call, call.inputs[kGamma]->matrix()));
  if (call.stage == 0) {
    Matrix nodes;
    if (trains) {
      HEDDLE_ASSIGN_OR_RETURN(nodes, moments.NodesOfCells());
    }
    outputs[0] = Value(std::move(nodes));
    return OkStatus();
  }
  if (trains) HEDDLE_RETURN_IF_ERROR(moments.SetMeans(call.Received(0).matrix()));
  if (call.stage == 1) {
    Matrix nodes;
    if (trains) {
      HEDDLE_ASSIGN_OR_RETURN(nodes, moments.NodesOfSquares());
    }
    outputs[0] = call.Received(0);
    outputs[1] = Value(std::move(nodes));
    return OkStatus();
  }
  if (trains) HEDDLE_RETURN_IF_ERROR(moments.SetVariances(call.Received(1).matrix()));
  const bool normalizes = outputs.size() == kOutputs;
  HEDDLE_RETURN_IF_ERROR(moments.Give(outputs.subspan(normalizes ? kNewMean : 0)));
  if (normalizes) {
    HEDDLE_ASSIGN_OR_RETURN(outputs[kResult], Normalize<Cell>(whole, outputs[kSavedMean].matrix(),
                                                              outputs[kSavedScale].matrix()));
  }
  return OkStatus();
}

Status RunStage(const StageCall& call, std::span<Value> outputs) {
  const Scalar& mode = call.inputs[kMode]->scalar();
  if (mode.IsString()) HEDDLE_RETURN_IF_ERROR(CheckMode(mode, StatusCode::kFailedPrecondition));
  const bool trains = mode.IsString() ? mode.AsString() == "train" : mode.AsBoolean();
  return TakesSingles(call.WholeCall()) ? RunStageOf<float>(call, trains, outputs)
                                        : RunStageOf<double>(call, trains, outputs);
}

constexpr Reach kFirstSums[] = {Reach::kAll}, kBothSums[] = {Reach::kHere, Reach::kAll};
constexpr Stage kStages[] = {{.outputs = kFirstSums, .reads_inputs = true},
                             {.outputs = kBothSums, .reads_inputs = true},
                             {.reads_inputs = true}};
constexpr StagedForm kStaged = {
    .stages = kStages, .result = StagedResult::kSameRows, .needs_granules = true, .run = RunStage};
constexpr StagedForm kMomentsStaged = {
    .stages = kStages, .result = StagedResult::kEach, .needs_granules = true, .run = RunStage};

// In mode "train" the backward operator; in mode "test" mean and scale are constants.
void DifferentiateBatchNorm(AdjointCall& call) {
  const Scalar* const mode = call.Known(5);
  for (size_t i = 1; i < 5; ++i)
    if (call.HasAdjoint(i))
      return call.Refuse("of the results of batch_norm2d() only the first has a derivative");
  if (mode == nullptr)
    return call.Refuse("the mode of batch_norm2d() must be known when the script is compiled");
  const NodeId mean = call.Computed(3), scale = call.Computed(4);
  if (mode->ToText() == "train") {
    const NodeId tuple = call.Add(
        "batch_norm2d_backward", {call.Input(0), call.Adjoint(0), call.Input(1), call.Input(6), mean, scale});
    for (int64_t i = 0; i < 3; ++i)
      if (call.IsWanted(static_cast<size_t>(i)))
        call.Give(static_cast<size_t>(i), call.Add("result", {tuple}, {{"index", Scalar(i)}}));
    return;
  }
  const std::initializer_list<std::pair<std::string_view, NodeId>> names = {
      {"D", call.Adjoint(0)}, {"M", mean}, {"S", scale}};
  if (call.IsWanted(0)) call.Give(0, call.Formula("bias_multiply(D, gamma * S)", names));
  if (call.IsWanted(1))
    call.Give(1, call.Formula("rowSums(matrix(colSums(D * bias_multiply(bias_add(X, -M), S)), nrow(gamma),"
                              "ncol(X) %/% nrow(gamma)))",
                              names));
  if (call.IsWanted(2))
    call.Give(2, call.Formula("rowSums(matrix(colSums(D), nrow(gamma), ncol(X) %/% nrow(gamma)))", names));
}

}  // namespace

/// [Y, mean, variance, saved_mean, saved_scale] = batch_norm2d(X, gamma, beta, ema_mean, ema_var, mode,
/// epsilon, mu): every channel of the images normalised, (x - m) * s * gamma + beta with s = 1 / sqrt(v +
/// epsilon). mode "train": m and v are the mean and the variance (by the number of cells) of the channel,
/// mean = mu * ema_mean + (1 - mu) * m, variance = mu * ema_var + (1 - mu) * m (m also there, as SystemDS has
/// it). mode "test": m and v are ema_mean and ema_var, which come back. saved_mean is m, saved_scale s.
///
/// Shapes:  X is N x K*L, Y, too; all others are K x 1.
/// Errors:  another mode; a number of columns that K does not divide.
/// Order:   sums of a channel in eight lanes, cell j of an image in lane j mod 8, images ascending within a
///          granule of them, then the tree, then L; m first, then the sum of squared deviations; everything
///          else one rounding an operator. Of floats m and s are rounded to floats, and Y is computed by the
///          arithmetic of floats.
/// Cost:    three passes over X; a channel is a task.
/// Rows:    on several ranks in stages; each keeps its images and has all of the small results.
extern constexpr Operator kBatchNorm2d = {.name = "batch_norm2d",
                                          .form = CallForm::kPositional,
                                          .parameters = "X gamma beta ema_mean ema_var mode epsilon mu",
                                          .min_inputs = 8,
                                          .max_inputs = 8,
                                          .results = 5,
                                          .infer_several = InferBatchNorm,
                                          .input_use = FirstByRows,
                                          .staged = &kStaged,
                                          .run_several = RunBatchNorm,
                                          .may_fail = true,
                                          .takes_singles = TakesSingles,
                                          .storages = Storages::kDense,
                                          .role = Role::kBatchNorm,
                                          .adjoints = "*; *; *; 0",
                                          .differentiate = DifferentiateBatchNorm};

/// [mean, variance, saved_mean, saved_scale] = batch_norm2d_moments(X, gamma, beta, ema_mean, ema_var,
/// trains, epsilon, mu): batch_norm2d without its first result, which is cell-wise then (compiler/optimize,
/// "cell-operands"); `trains` is true for mode "train".
///
/// Shapes, errors, order: as batch_norm2d.
/// Cost:    two passes over X; a channel is a task.
/// Rows:    on several ranks in stages; every rank has the results.
extern constexpr Operator kBatchNorm2dMoments = {
    .name = "batch_norm2d_moments",
    .parameters = "X gamma beta ema_mean ema_var trains epsilon mu",
    .min_inputs = 8,
    .max_inputs = 8,
    .results = 4,
    .infer_several = InferMoments,
    .input_use = FirstByRows,
    .staged = &kMomentsStaged,
    .run_several = RunMoments,
    .takes_singles = TakesSingles,
    .storages = Storages::kDense};

}  // namespace heddle::ops
