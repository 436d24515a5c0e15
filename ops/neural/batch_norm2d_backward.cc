// SPDX-License-Identifier: Apache-2.0
#include "ops/base/arguments.h"
#include "ops/base/parallel.h"
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
Status RunCells(const KernelCall& call, std::span<Value> results) {
  const auto matrix = [&](int i) -> const Matrix& { return call.inputs[static_cast<size_t>(i)]->matrix(); };
  const auto of_channel = [&](int i, int64_t k) { return static_cast<double>(CellsOf<Cell>(call, i)[k]); };
  const auto x = [cells = CellsOf<Cell>(call, kImages)](int64_t i) { return static_cast<double>(cells[i]); };
  const auto gradient = [cells = CellsOf<Cell>(call, kGradient)](int64_t i) {
    return static_cast<double>(cells[i]);
  };
  const Channels channels{matrix(kImages).rows(), matrix(kGamma).rows(),
                          matrix(kImages).columns() / matrix(kGamma).rows()};
  constexpr ElementType kType = kElementTypeOf<Cell>;
  HEDDLE_ASSIGN_OR_RETURN(Matrix of_images,
                          Matrix::Dense(matrix(kImages).rows(), matrix(kImages).columns(), kType));
  HEDDLE_ASSIGN_OR_RETURN(Matrix of_gamma, Matrix::Dense(channels.channels, 1, kType));
  HEDDLE_ASSIGN_OR_RETURN(Matrix of_beta, Matrix::Dense(channels.channels, 1, kType));
  ParallelFor(channels.channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      if (IsCancelled(call.context.cancelled)) return;
      const double mean = of_channel(kMean, k), scale = of_channel(kScale, k);
      const auto normal = [&](int64_t i) { return (x(i) - mean) * scale; };
      const double gamma = SumOfChannel(channels, k, [&](int64_t i) { return gradient(i) * normal(i); });
      const double beta = SumOfChannel(channels, k, gradient);
      of_gamma.mutable_data<Cell>()[k] = static_cast<Cell>(gamma);
      of_beta.mutable_data<Cell>()[k] = static_cast<Cell>(beta);
      const double count = channels.Count(), factor = of_channel(kGamma, k) * scale / count;
      Cell* const result = of_images.mutable_data<Cell>();
      for (int64_t image = 0; image < channels.images; ++image) {
        const int64_t first = channels.At(image, k);
        for (int64_t i = first; i < first + channels.cells; ++i)
          result[i] = static_cast<Cell>(factor * (count * gradient(i) - beta - normal(i) * gamma));
      }
    }
  });
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  results[kOfImages] = Value(std::move(of_images));
  results[kOfGamma] = Value(std::move(of_gamma));
  results[kOfBeta] = Value(std::move(of_beta));
  return OkStatus();
}

Status RunBackward(const KernelCall& call, std::span<Value> results) {
  HEDDLE_RETURN_IF_ERROR(CheckInputs([&](int i) { return call.inputs[static_cast<size_t>(i)]->shape(); },
                                     StatusCode::kFailedPrecondition));
  return TakesSingles(call) ? RunCells<float>(call, results) : RunCells<double>(call, results);
}

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
extern constexpr Operator kBatchNorm2dBackward = {.name = kName,
                                                  .form = CallForm::kPositional,
                                                  .parameters = "X dout gamma epsilon mean scale",
                                                  .min_inputs = 6,
                                                  .max_inputs = 6,
                                                  .results = 3,
                                                  .infer_several = InferBackward,
                                                  .run_several = RunBackward,
                                                  .takes_singles = TakesSingles,
                                                  .storages = Storages::kDense};

}  // namespace heddle::ops
