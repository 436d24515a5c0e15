// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/base/arguments.h"
#include "ops/base/parallel.h"
#include "ops/cells/move_cells.h"
#include "ops/neural/cell_types.h"
#include "ops/neural/channels.h"

namespace heddle::ops {
namespace {

constexpr std::string_view kName = "batch_norm2d_backward";
enum Input { kImages, kGradient, kGamma, kEpsilon, kMean, kScale };
enum Output { kOfImages, kOfGamma, kOfBeta, kOutputs };

template <typename ShapeOf>
Status CheckInputs(const ShapeOf& shape_of, StatusCode code) {
  const Shape x = shape_of(kImages), gradient = shape_of(kGradient), gamma = shape_of(kGamma);
  HEDDLE_RETURN_IF_ERROR(CheckChannels(kName, x, gamma, code));
  if (x.IsKnown() && gradient.IsKnown() && !(x == gradient))
    return Status(code, fmt::format("{}: dout is {} but X {}", kName, gradient, x));
  HEDDLE_RETURN_IF_ERROR(CheckColumn(kName, "the mean", shape_of(kMean), gamma, code));
  return CheckColumn(kName, "the scale", shape_of(kScale), gamma, code);
}

Result<std::vector<ValueInfo>> InferBackward(const InferContext& context) {
  constexpr std::pair<int, std::string_view> kMatrices[] = {
      {kImages, "X"}, {kGradient, "dout"}, {kGamma, "gamma"}, {kMean, "the mean"}, {kScale, "the scale"}};
  for (const auto& [i, what] : kMatrices) HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, i, what));
  HEDDLE_RETURN_IF_ERROR(RequireScalar(context, kEpsilon, "epsilon"));
  HEDDLE_RETURN_IF_ERROR(CheckInputs([&](int i) { return context.inputs[static_cast<size_t>(i)].shape; },
                                     StatusCode::kInvalidArgument));
  std::vector<ValueInfo> results(kOutputs, ValueInfo::OfMatrix({context.inputs[kGamma].shape.rows, 1}));
  results[kOfImages] = ValueInfo::OfMatrix(context.inputs[kImages].shape);
  return results;
}

bool TakesSingles(const KernelCall& call) {
  return HoldSingles(call, {kImages, kGradient, kGamma, kMean, kScale});
}

// Floats are computed in doubles, and rounded where they are written.
template <typename Cell>
class Gradients {
  double OfChannel(int input, int64_t k) const { return static_cast<double>(CellsOf<Cell>(call_, input)[k]); }
  double Gradient(int64_t i) const { return static_cast<double>(gradient_[i]); }
  // (x - mean) * scale of the cells of a channel.
  auto NormalOf(int64_t k) const {
    return [x = x_, mean = OfChannel(kMean, k), scale = OfChannel(kScale, k)](int64_t i) {
      return (static_cast<double>(x[i]) - mean) * scale;
    };
  }
  void GiveChannel(int64_t image, int64_t k, double gamma, double beta, Cell* result) const {
    const double count = channels_.Count(), factor = OfChannel(kGamma, k) * OfChannel(kScale, k) / count;
    const int64_t first = channels_.At(image, k);
    const auto normal = NormalOf(k);
    for (int64_t i = first; i < first + channels_.cells; ++i)
      result[i] = static_cast<Cell>(factor * (count * Gradient(i) - beta - normal(i) * gamma));
  }

 public:
  Gradients(const KernelCall& call, const Channels& channels) : call_(call), channels_(channels) {}

  Result<Matrix> NodesOfGamma() const {
    return NodesOfChannels(channels_, call_.context.cancelled, [&](int64_t k) {
      return [this, normal = NormalOf(k)](int64_t i) { return Gradient(i) * normal(i); };
    });
  }
  Result<Matrix> NodesOfBeta() const {
    return NodesOfChannels(channels_, call_.context.cancelled,
                           [&](int64_t) { return [this](int64_t i) { return Gradient(i); }; });
  }

  // From all nodes of both.
  Status Give(const Matrix& nodes_of_gamma, const Matrix& nodes_of_beta, std::span<Value> results) const {
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<double> gammas,
                            SumsOfChannels(channels_, nodes_of_gamma, call_.context.cancelled));
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<double> betas,
                            SumsOfChannels(channels_, nodes_of_beta, call_.context.cancelled));
    const int64_t count = channels_.channels, columns = count * channels_.cells;
    constexpr ElementType kType = kElementTypeOf<Cell>;
    HEDDLE_ASSIGN_OR_RETURN(Matrix of_images, Matrix::Dense(channels_.Here(), columns, kType));
    HEDDLE_ASSIGN_OR_RETURN(Matrix of_gamma, Matrix::Dense(count, 1, kType));
    HEDDLE_ASSIGN_OR_RETURN(Matrix of_beta, Matrix::Dense(count, 1, kType));
    std::transform(gammas.begin(), gammas.end(), of_gamma.mutable_data<Cell>(),
                   [](double x) { return static_cast<Cell>(x); });
    std::transform(betas.begin(), betas.end(), of_beta.mutable_data<Cell>(),
                   [](double x) { return static_cast<Cell>(x); });
    ParallelFor(channels_.Here(), RowGrain(columns), [&](int64_t begin, int64_t end) {
      for (int64_t image = begin; image < end && !IsCancelled(call_.context.cancelled); ++image)
        for (int64_t k = 0; k < count; ++k)
          GiveChannel(image, k, gammas[static_cast<size_t>(k)], betas[static_cast<size_t>(k)],
                      of_images.mutable_data<Cell>());
    });
    if (IsCancelled(call_.context.cancelled)) return Cancelled("cancelled");
    results[kOfImages] = Value(std::move(of_images));
    results[kOfGamma] = Value(std::move(of_gamma));
    results[kOfBeta] = Value(std::move(of_beta));
    return OkStatus();
  }

 private:
  const KernelCall& call_;
  const Channels channels_;
  const Cell* const x_ = CellsOf<Cell>(call_, kImages);
  const Cell* const gradient_ = CellsOf<Cell>(call_, kGradient);
};

template <typename Cell>
Status RunCells(const KernelCall& call, std::span<Value> results) {
  const Gradients<Cell> gradients(
      call, Channels::OfWhole(call.inputs[kImages]->matrix(), call.inputs[kGamma]->matrix()));
  HEDDLE_ASSIGN_OR_RETURN(const Matrix gamma, gradients.NodesOfGamma());
  HEDDLE_ASSIGN_OR_RETURN(const Matrix beta, gradients.NodesOfBeta());
  return gradients.Give(gamma, beta, results);
}

Status RunBackward(const KernelCall& call, std::span<Value> results) {
  HEDDLE_RETURN_IF_ERROR(CheckInputs([&](int i) { return call.inputs[static_cast<size_t>(i)]->shape(); },
                                     StatusCode::kFailedPrecondition));
  return TakesSingles(call) ? RunCells<float>(call, results) : RunCells<double>(call, results);
}

// Sums go to all ranks; each computes its images.
template <typename Cell>
Status RunStageOf(const StageCall& call, std::span<Value> outputs) {
  const KernelCall whole = call.WholeCall();
  const Gradients<Cell> gradients(whole, Channels::OfRank(call, call.inputs[kGamma]->matrix()));
  if (call.stage == 1) return gradients.Give(call.Received(0).matrix(), call.Received(1).matrix(), outputs);
  HEDDLE_ASSIGN_OR_RETURN(Matrix gamma, gradients.NodesOfGamma());
  HEDDLE_ASSIGN_OR_RETURN(Matrix beta, gradients.NodesOfBeta());
  outputs[0] = Value(std::move(gamma));
  outputs[1] = Value(std::move(beta));
  return OkStatus();
}

Status RunStage(const StageCall& call, std::span<Value> outputs) {
  return TakesSingles(call.WholeCall()) ? RunStageOf<float>(call, outputs)
                                        : RunStageOf<double>(call, outputs);
}

InputUse ImagesByRows(const Node&, std::span<const ValueInfo>, int i) {
  return i == kImages || i == kGradient ? InputUse::kRows : InputUse::kWhole;
}

constexpr Reach kSums[] = {Reach::kAll, Reach::kAll};
constexpr Stage kStages[] = {{.outputs = kSums, .reads_inputs = true}, {.reads_inputs = true}};
constexpr StagedForm kStaged = {
    .stages = kStages, .result = StagedResult::kSameRows, .needs_granules = true, .run = RunStage};

}  // namespace

/// [dX, dgamma, dbeta] = batch_norm2d_backward(X, dout, gamma, epsilon, mean, scale): the gradients of
/// batch_norm2d in mode "train", of which mean and scale are the last two results. With n = (x - mean) *
/// scale and M cells in a channel: dgamma = sum(dout * n), dbeta = sum(dout), dX = (gamma * scale / M) * (M *
/// dout - dbeta - n * dgamma). epsilon is in the scale already.
///
/// Shapes:  X and dout are N x K*L, dX, too; all others are K x 1.
/// Errors:  shapes that do not fit.
/// Order:   sums as of batch_norm2d; everything else one rounding an operator, from left to right.
/// Cost:    three passes over X and dout; a channel is a task.
/// Rows:    on several ranks in stages; each keeps its images and has all of the other results.
extern constexpr Operator kBatchNorm2dBackward = {.name = kName,
                                                  .form = CallForm::kPositional,
                                                  .parameters = "X dout gamma epsilon mean scale",
                                                  .min_inputs = 6,
                                                  .max_inputs = 6,
                                                  .results = 3,
                                                  .infer_several = InferBackward,
                                                  .input_use = ImagesByRows,
                                                  .staged = &kStaged,
                                                  .run_several = RunBackward,
                                                  .takes_singles = TakesSingles,
                                                  .storages = Storages::kDense};

}  // namespace heddle::ops
