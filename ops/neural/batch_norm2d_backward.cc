// SPDX-License-Identifier: Apache-2.0
#include "ops/arguments.h"
#include "ops/neural/channels.h"
#include "ops/parallel.h"

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

Status RunBackward(const KernelCall& call, std::span<Value> results) {
  const auto matrix = [&](int i) -> const Matrix& { return call.inputs[static_cast<size_t>(i)]->matrix(); };
  HEDDLE_RETURN_IF_ERROR(
      CheckInputs([&](int i) { return matrix(i).shape(); }, StatusCode::kFailedPrecondition));
  const double* const x = matrix(kImages).data();
  const double* const gradient = matrix(kGradient).data();
  const Channels channels{matrix(kImages).rows(), matrix(kGamma).rows(),
                          matrix(kImages).columns() / matrix(kGamma).rows()};
  HEDDLE_ASSIGN_OR_RETURN(Matrix of_images, Matrix::Dense(matrix(kImages).rows(), matrix(kImages).columns()));
  HEDDLE_ASSIGN_OR_RETURN(Matrix of_gamma, Matrix::Dense(channels.channels, 1));
  HEDDLE_ASSIGN_OR_RETURN(Matrix of_beta, Matrix::Dense(channels.channels, 1));
  ParallelFor(channels.channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      if (IsCancelled(call.context.cancelled)) return;
      const double mean = matrix(kMean).data()[k], scale = matrix(kScale).data()[k];
      const auto normal = [&](int64_t i) { return (x[i] - mean) * scale; };
      const double gamma = SumOfChannel(channels, k, [&](int64_t i) { return gradient[i] * normal(i); });
      const double beta = SumOfChannel(channels, k, [&](int64_t i) { return gradient[i]; });
      of_gamma.mutable_data()[k] = gamma;
      of_beta.mutable_data()[k] = beta;
      const double count = channels.Count(), factor = matrix(kGamma).data()[k] * scale / count;
      for (int64_t image = 0; image < channels.images; ++image) {
        const int64_t first = channels.At(image, k);
        for (int64_t i = first; i < first + channels.cells; ++i)
          of_images.mutable_data()[i] = factor * (count * gradient[i] - beta - normal(i) * gamma);
      }
    }
  });
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  results[kOfImages] = Value(std::move(of_images));
  results[kOfGamma] = Value(std::move(of_gamma));
  results[kOfBeta] = Value(std::move(of_beta));
  return OkStatus();
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
                                                  .storages = Storages::kDense};

}  // namespace heddle::ops
