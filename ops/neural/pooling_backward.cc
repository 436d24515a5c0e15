// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/arguments.h"
#include "ops/neural/check_shape.h"
#include "ops/neural/pooling.h"
#include "ops/parallel.h"

namespace heddle::ops {
namespace {

enum Input { kImages, kGradient, kShapes };

constexpr int64_t kTaskCells = 1 << 15;

Status CheckInputs(std::string_view op, const Windows& windows, Shape images, Shape gradient,
                   StatusCode code) {
  HEDDLE_RETURN_IF_ERROR(CheckShape(op, "X", images, {windows.n, windows.Image()}, code));
  return CheckShape(op, "dout", gradient, {windows.n, windows.Results()}, code);
}

Result<ValueInfo> InferPoolBackward(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, kImages, "argument 1"));
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, kGradient, "argument 2"));
  HEDDLE_ASSIGN_OR_RETURN(const Windows windows, InferWindows(context, kShapes, WindowForm::kPool));
  HEDDLE_RETURN_IF_ERROR(CheckInputs(context.node.op, windows, context.inputs[kImages].shape,
                                     context.inputs[kGradient].shape, StatusCode::kInvalidArgument));
  // Where the windows are not known yet, the size of the result is not either: then they are checked first.
  return ValueInfo::OfMatrix({windows.n, windows.Results() == kUnknown ? kUnknown : windows.Image()});
}

RowRule RowWise(const Node&, std::span<const ValueInfo>) { return RowRule::kRowWise; }
InputUse MatricesByRows(const Node&, std::span<const ValueInfo>, int i) {
  return i < kShapes ? InputUse::kRows : InputUse::kWhole;
}

// `spread(windows, cells, window, gradient, out)` adds the gradient of a window to that of its channel.
template <typename Spread>
Result<Value> RunPoolBackward(const KernelCall& call, const Spread& spread) {
  HEDDLE_ASSIGN_OR_RETURN(const Windows windows, GivenWindows(call, kShapes, WindowForm::kPool));
  const Matrix& x = call.inputs[kImages]->matrix();
  const Matrix& gradient = call.inputs[kGradient]->matrix();
  HEDDLE_RETURN_IF_ERROR(CheckInputs(call.node.op, windows, call.input_infos[kImages].shape,
                                     call.input_infos[kGradient].shape, StatusCode::kFailedPrecondition));
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(x.rows(), windows.Image()));
  const int64_t places = windows.Places(), channel_cells = windows.h * windows.w;
  ParallelFor(x.rows() * windows.c, kTaskCells / (places + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t channel = begin; channel < end; ++channel) {
      if (IsCancelled(call.context.cancelled)) return;
      double* const out = result.mutable_data() + channel * channel_cells;
      std::fill_n(out, channel_cells, 0.0);
      const double* of_window = gradient.data() + channel * places;
      for (int64_t i = 0; i < windows.p; ++i)
        for (int64_t j = 0; j < windows.q; ++j)
          spread(windows, x.data() + channel * channel_cells, PoolWindow(windows, i, j), *of_window++, out);
    }
  });
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  return Value(std::move(result));
}

Result<Value> RunMaxPoolBackward(const KernelCall& call) {
  return RunPoolBackward(call, [](const Windows& windows, const double* cells, const PoolWindow& window,
                                  double gradient, double* out) {
    double most = kLeastOfPool;
    int64_t place = -1;
    for (int64_t y = window.top; y < window.bottom; ++y)
      for (int64_t x = window.left; x < window.right; ++x)
        if (const double cell = cells[y * windows.w + x]; cell > most) {
          most = cell;
          place = y * windows.w + x;
        }
    if (place >= 0) out[place] += gradient;
  });
}

Result<Value> RunAveragePoolBackward(const KernelCall& call) {
  return RunPoolBackward(call, [](const Windows& windows, const double*, const PoolWindow& window,
                                  double gradient, double* out) {
    const double share = gradient / (static_cast<double>(windows.r) * static_cast<double>(windows.s));
    for (int64_t y = window.top; y < window.bottom; ++y)
      for (int64_t x = window.left; x < window.right; ++x) out[y * windows.w + x] += share;
  });
}

constexpr Operator PoolBackward(std::string_view name, Result<Value> (*run)(const KernelCall&)) {
  return {.name = name,
          .form = CallForm::kNamed,
          .parameters = "X dout input_shape[4] pool_size[2] stride[2] padding[2]",
          .min_inputs = 12,
          .max_inputs = 12,
          .infer = InferPoolBackward,
          .row_rule = RowWise,
          .input_use = MatricesByRows,
          .run = run,
          .storages = Storages::kDense};
}

}  // namespace

/// max_pool_backward(X, dout, input_shape=, pool_size=, stride=, padding=): the gradient of max_pool by X,
/// dout being that by its result. It goes to the first cell of the window that is the largest; nowhere where
/// no cell is above the least finite number (NaN is not).
///
/// Shapes:  X is N x C*H*W, dout N x C*P*Q, the result as X. Format: dense.
/// Order:   a cell adds those of its windows, rows, then columns of windows ascending, from +0.0.
/// Cost:    N*C*P*Q * R*S comparisons.
extern constexpr Operator kMaxPoolBackward = PoolBackward("max_pool_backward", RunMaxPoolBackward);

/// avg_pool_backward(X, dout, input_shape=, pool_size=, stride=, padding=): the gradient of avg_pool; of X
/// only the size counts.
///
/// Shapes:  as max_pool_backward.
/// Order:   dout / (R*S), then as max_pool_backward.
/// Cost:    N*C*P*Q * R*S additions.
extern constexpr Operator kAveragePoolBackward = PoolBackward("avg_pool_backward", RunAveragePoolBackward);

}  // namespace heddle::ops
