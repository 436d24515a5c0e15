// SPDX-License-Identifier: Apache-2.0
#include "ops/neural/pooling.h"

#include <algorithm>

#include "ops/adjoint.h"
#include "ops/arguments.h"
#include "ops/neural/check_shape.h"
#include "ops/parallel.h"

namespace heddle::ops {
namespace {

enum Input { kImages, kShapes };

// Cells of windows that are worth a task.
constexpr int64_t kTaskCells = 1 << 15;

Result<ValueInfo> InferPool(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, kImages, "argument 1"));
  HEDDLE_ASSIGN_OR_RETURN(const Windows windows, InferWindows(context, kShapes, WindowForm::kPool));
  HEDDLE_RETURN_IF_ERROR(CheckShape(context.node.op, "X", context.inputs[kImages].shape,
                                    {windows.n, windows.Image()}, StatusCode::kInvalidArgument));
  return ValueInfo::OfMatrix({windows.n, windows.Results()});
}

RowRule RowWise(const Node&, std::span<const ValueInfo>) { return RowRule::kRowWise; }
InputUse ImagesByRows(const Node&, std::span<const ValueInfo>, int i) {
  return i == kImages ? InputUse::kRows : InputUse::kWhole;
}

// `pool(channel, window)` gives a cell of the result.
template <typename Pool>
Result<Value> RunPool(const KernelCall& call, const Pool& pool) {
  HEDDLE_ASSIGN_OR_RETURN(const Windows windows, GivenWindows(call, kShapes, WindowForm::kPool));
  const Matrix& x = call.inputs[kImages]->matrix();
  HEDDLE_RETURN_IF_ERROR(CheckShape(call.node.op, "X", call.input_infos[kImages].shape,
                                    {windows.n, windows.Image()}, StatusCode::kFailedPrecondition));
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(x.rows(), windows.Results()));
  const int64_t places = windows.Places();
  // Rows of channels: images without gaps are such rows, too.
  ParallelFor(x.rows() * windows.c, kTaskCells / (places + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t channel = begin; channel < end; ++channel) {
      if (IsCancelled(call.context.cancelled)) return;
      const double* const cells = x.data() + channel * windows.h * windows.w;
      double* out = result.mutable_data() + channel * places;
      for (int64_t i = 0; i < windows.p; ++i)
        for (int64_t j = 0; j < windows.q; ++j) *out++ = pool(windows, cells, PoolWindow(windows, i, j));
    }
  });
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  return Value(std::move(result));
}

// NaN if either is; -0.0 is less than 0.0.
double Larger(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  if (a == b) return std::signbit(a) ? b : a;
  return a < b ? b : a;
}

Result<Value> RunMaxPool(const KernelCall& call) {
  return RunPool(call, [](const Windows& windows, const double* cells, const PoolWindow& window) {
    double most = kLeastOfPool;
    for (int64_t y = window.top; y < window.bottom; ++y)
      for (int64_t x = window.left; x < window.right; ++x) most = Larger(most, cells[y * windows.w + x]);
    return most;
  });
}

Result<Value> RunAveragePool(const KernelCall& call) {
  return RunPool(call, [](const Windows& windows, const double* cells, const PoolWindow& window) {
    double sum = 0;
    for (int64_t y = window.top; y < window.bottom; ++y)
      for (int64_t x = window.left; x < window.right; ++x) sum += cells[y * windows.w + x];
    return sum / (static_cast<double>(windows.r) * static_cast<double>(windows.s));
  });
}

// The backward operator of the same name.
void DifferentiatePool(AdjointCall& call) {
  std::vector<NodeId> inputs = {call.Input(0), call.Adjoint()};
  for (size_t i = 1; i < 11; ++i) inputs.push_back(call.Input(i));
  call.Give(0, call.Add(call.node().op + "_backward", std::move(inputs)));
}

constexpr Operator Pool(std::string_view name, Result<Value> (*run)(const KernelCall&)) {
  return {.name = name,
          .form = CallForm::kNamed,
          .parameters = "X input_shape[4] pool_size[2] stride[2] padding[2]",
          .min_inputs = 11,
          .max_inputs = 11,
          .infer = InferPool,
          .row_rule = RowWise,
          .input_use = ImagesByRows,
          .run = run,
          .storages = Storages::kDense,
          .adjoints = "*; 0",
          .differentiate = DifferentiatePool};
}

}  // namespace

PoolWindow::PoolWindow(const Windows& windows, int64_t i, int64_t j) {
  const int64_t first_row = i * windows.stride_h - windows.pad_h;
  const int64_t first_column = j * windows.stride_w - windows.pad_w;
  top = std::max<int64_t>(0, first_row);
  bottom = std::min(windows.h, first_row + windows.r);
  left = std::max<int64_t>(0, first_column);
  right = std::min(windows.w, first_column + windows.s);
}

/// max_pool(X, input_shape=[N,C,H,W], pool_size=[R,S], stride=, padding=): the largest cell of each window.
///
/// Shapes:  X is N x C*H*W, the result N x C*P*Q with P and Q as of conv2d. Format: dense.
/// Padding: never wins: a window of nothing else has the least finite number. NaN if a cell is.
/// Errors:  a window larger than the padded image; shapes that contradict each other.
/// Cost:    N*C*P*Q * R*S comparisons.
extern constexpr Operator kMaxPool = Pool("max_pool", RunMaxPool);

/// avg_pool(X, input_shape=[N,C,H,W], pool_size=[R,S], stride=, padding=): the sum of each window by R*S,
/// whatever part of it is padding.
///
/// Shapes:  as max_pool.
/// Order:   rows, then columns of the window ascending, from +0.0; then the division.
/// Cost:    N*C*P*Q * R*S additions.
extern constexpr Operator kAveragePool = Pool("avg_pool", RunAveragePool);

}  // namespace heddle::ops
