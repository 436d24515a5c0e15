// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <type_traits>

#include "core/values/panels.h"
#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/base/machine_constants.h"
#include "ops/base/parallel.h"
#include "ops/base/row_rules.h"
#include "ops/base/stages.h"
#include "ops/neural/cell_types.h"
#include "ops/neural/check_shape.h"
#include "ops/neural/unfold.h"
#include "ops/product/matmul_gemm.h"
#include "ops/product/matmul_pack.h"

namespace heddle::ops {
namespace {

enum Input { kImages, kFilters, kShapes };

// Bytes of unfolded windows that a task holds, where a few windows do not have more: they stay in the
// second-level cache beside the filters.
constexpr int64_t kUnfoldedBytes = 384 << 10;
// Multiples of the columns of a tile of products. With at most so many windows, a product of few filters
// reads doubles where they are unfolded (ReadsInPlace), unless their rows lie multiples of 512 bytes apart,
// and floats have no more than four strips, beside which filters are not packed.
template <typename Cell>
constexpr int64_t kTileColumns = std::is_same_v<Cell, float> ? 48 : 24;
template <typename Cell>
constexpr int64_t kMostWindows = std::is_same_v<Cell, float> ? 192 : 240;
constexpr int64_t kLeastWindows = 72;

template <typename Cell>
int64_t WindowsOfTask(int64_t filter) {
  constexpr int64_t kTile = kTileColumns<Cell>, kCells = kUnfoldedBytes / static_cast<int64_t>(sizeof(Cell));
  const int64_t windows = std::clamp(kCells / filter / kTile * kTile,
                                     CeilDivide(kLeastWindows, kTile) * kTile, kMostWindows<Cell>);
  return std::is_same_v<Cell, double> && windows % 64 == 0 ? windows - kTile : windows;
}

Status CheckInputs(std::string_view op, const Windows& windows, Shape images, Shape filters,
                   StatusCode code) {
  HEDDLE_RETURN_IF_ERROR(CheckShape(op, "X", images, {windows.n, windows.Image()}, code));
  return CheckShape(op, "W", filters, {windows.k, windows.Filter()}, code);
}

Result<ValueInfo> InferConv2d(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, kImages, "argument 1"));
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, kFilters, "argument 2"));
  HEDDLE_ASSIGN_OR_RETURN(const Windows windows, InferWindows(context, kShapes, WindowForm::kFilter));
  HEDDLE_RETURN_IF_ERROR(CheckInputs(context.node.op, windows, context.inputs[kImages].shape,
                                     context.inputs[kFilters].shape, StatusCode::kInvalidArgument));
  return ValueInfo::OfMatrix({windows.n, windows.Results()});
}

template <typename Cell>
Result<Value> Convolve(const KernelCall& call, const Windows& windows) {
  const Matrix& x = call.inputs[kImages]->matrix();
  const Matrix& filters = call.inputs[kFilters]->matrix();
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(x.rows(), windows.Results(), kElementTypeOf<Cell>));
  const int64_t places = windows.Places(), filter = windows.Filter();
  const int64_t width = std::min(places, WindowsOfTask<Cell>(filter));
  const int64_t tiles = CeilDivide(places, width);
  ParallelFor(x.rows() * tiles, 1, [&](int64_t first, int64_t last) {
    const PackedCells<Cell> unfolded(filter * width);
    for (int64_t unit = first; unit < last; ++unit) {
      if (IsCancelled(call.context.cancelled)) return;
      const int64_t image = unit / tiles, begin = unit % tiles * width;
      const int64_t end = std::min(places, begin + width);
      Unfold(windows, x.data<Cell>() + image * x.columns(), begin, end, 0, filter, unfolded.data(),
             end - begin);
      GemmOf<Cell> product{.m = windows.k,
                           .n = end - begin,
                           .k = filter,
                           .a = filters.data<Cell>(),
                           .a_row = filter,
                           .b = unfolded.data(),
                           .b_row = end - begin,
                           .c_row = places};
      WriteCells(result.mutable_data<Cell>() + image * result.columns() + begin, &product);
      Run(product);
    }
  });
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  return Value(std::move(result));
}

Result<Value> RunConv2d(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const Windows windows, GivenWindows(call, kShapes, WindowForm::kFilter));
  HEDDLE_RETURN_IF_ERROR(CheckInputs(call.node.op, windows, call.input_infos[kImages].shape,
                                     call.inputs[kFilters]->matrix().shape(),
                                     StatusCode::kFailedPrecondition));
  return HoldSingles(call, {kImages, kFilters}) ? Convolve<float>(call, windows)
                                                : Convolve<double>(call, windows);
}
bool TakesSingles(const KernelCall& call) { return HoldSingles(call, {kImages, kFilters}); }

Cost Conv2dCost(const Node& node, std::span<const ValueInfo> inputs) {
  const Shape &x = inputs[kImages].shape, &filters = inputs[kFilters].shape, &result = node.info.shape;
  if (!x.IsKnown() || !filters.IsKnown() || !result.IsKnown()) return {};
  const auto cells = static_cast<double>(result.Cells());
  return {.work = kWorkOfMultiplyAdd * cells * static_cast<double>(filters.columns),
          .bytes = 8 * (cells + static_cast<double>(x.Cells()) + static_cast<double>(filters.Cells()))};
}

// The unfolded windows of one task.
double Conv2dWorkingBytes(const Node&, std::span<const ValueInfo> inputs) {
  const auto filter = static_cast<double>(inputs[kFilters].shape.columns);
  return std::max<double>(kUnfoldedBytes, sizeof(double) * kLeastWindows * filter);
}

// The numbers of shapes are the same in the backward operators.
void DifferentiateConv2d(AdjointCall& call) {
  const auto backward = [&](size_t with) {
    std::vector<NodeId> inputs = {call.Input(with), call.Adjoint()};
    for (size_t i = kShapes; i < 14; ++i) inputs.push_back(call.Input(i));
    return inputs;
  };
  if (call.IsWanted(kImages)) call.Give(kImages, call.Add("conv2d_backward_data", backward(kFilters)));
  if (call.IsWanted(kFilters)) call.Give(kFilters, call.Add("conv2d_backward_filter", backward(kImages)));
}

}  // namespace

/// conv2d(X, W, input_shape=[N,C,H,W], filter_shape=[K,C,R,S], stride=, padding=): every image, a row of X,
/// correlated with K filters. A bias that a script names as well is not added, as in the reference engine:
/// bias_add() is for that.
///
/// Shapes:  X is N x C*H*W, W K x C*R*S, the result N x K*P*Q with P = floor((H + 2 * pad - R) / stride) + 1,
///          Q alike. Format: dense; cells outside the image are 0.0 and take part like others.
/// Errors:  a window larger than the padded image; shapes that contradict each other.
/// Order:   each cell one chain s = fma(w, x, s) over channels, rows and columns of the filter ascending,
///          from +0.0, + 0.0 at its end: the product W %*% (windows as columns), of floats, too.
/// Cost:    2 * N*K*P*Q * C*R*S; unfolds a few windows at a time and multiplies them by the packed product.
extern constexpr Operator kConv2d = {
    .name = "conv2d",
    .form = CallForm::kNamed,
    .parameters = "X W input_shape[4] filter_shape[4] stride[2] padding[2] bias?",
    .drops_last_input = true,
    .min_inputs = 14,
    .max_inputs = 15,
    .infer = InferConv2d,
    .row_rule = RowWise,
    .input_use = FirstByRows,
    .cost = Conv2dCost,
    .run = RunConv2d,
    .takes_singles = TakesSingles,
    .storages = Storages::kDense,
    .working_bytes = Conv2dWorkingBytes,
    .adjoints = "*; *; 0",
    .differentiate = DifferentiateConv2d};

}  // namespace heddle::ops
