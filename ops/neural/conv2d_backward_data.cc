// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "core/values/panels.h"
#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/base/machine_constants.h"
#include "ops/base/parallel.h"
#include "ops/base/row_rules.h"
#include "ops/neural/cell_types.h"
#include "ops/neural/check_shape.h"
#include "ops/neural/unfold.h"
#include "ops/product/matmul_gemm.h"
#include "ops/product/matmul_pack.h"

namespace heddle::ops {
namespace {

enum Input { kFilters, kGradient, kShapes };

// Cells of the gradient of windows that a task holds, where a row of windows does not have more: they stay
// in the second-level cache.
constexpr int64_t kGradientCells = 1 << 16;
// Where there are fewer images for each thread, tasks are a part of the channels.
constexpr int64_t kLeastImagesOfThread = 4;

Status CheckInputs(std::string_view op, const Windows& windows, Shape filters, Shape gradient,
                   StatusCode code) {
  HEDDLE_RETURN_IF_ERROR(CheckShape(op, "W", filters, {windows.k, windows.Filter()}, code));
  return CheckShape(op, "dout", gradient, {windows.n, windows.Results()}, code);
}

Result<ValueInfo> InferBackwardData(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, kFilters, "argument 1"));
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, kGradient, "argument 2"));
  HEDDLE_ASSIGN_OR_RETURN(const Windows windows, InferWindows(context, kShapes, WindowForm::kFilter));
  HEDDLE_RETURN_IF_ERROR(CheckInputs(context.node.op, windows, context.inputs[kFilters].shape,
                                     context.inputs[kGradient].shape, StatusCode::kInvalidArgument));
  // Where the windows are not known yet, the size of the result is not either: then they are checked first.
  return ValueInfo::OfMatrix({windows.n, windows.Results() == kUnknown ? kUnknown : windows.Image()});
}

InputUse GradientByRows(const Node&, std::span<const ValueInfo>, int i) {
  return i == kGradient ? InputUse::kRows : InputUse::kWhole;
}

template <typename Cell>
Result<Value> FoldBack(const KernelCall& call, const Windows& windows) {
  const Matrix& filters = call.inputs[kFilters]->matrix();
  const Matrix& gradient = call.inputs[kGradient]->matrix();
  HEDDLE_ASSIGN_OR_RETURN(Matrix result,
                          Matrix::Dense(gradient.rows(), windows.Image(), kElementTypeOf<Cell>));
  const int64_t places = windows.Places(), area = windows.r * windows.s;
  const int64_t units_of_image =
      CeilDivide(kLeastImagesOfThread * ParallelThreads(), std::max<int64_t>(gradient.rows(), 1));
  const int64_t group = CeilDivide(windows.c, std::min(units_of_image, windows.c));
  const int64_t groups = CeilDivide(windows.c, group), channel_cells = windows.h * windows.w;
  const int64_t rows =
      std::clamp<int64_t>(kGradientCells / (group * area * windows.q), 1, std::max<int64_t>(windows.p, 1));
  ParallelFor(gradient.rows() * groups, 1, [&](int64_t first, int64_t last) {
    const PackedCells<Cell> of_windows(group * area * rows * windows.q);
    for (int64_t unit = first; unit < last; ++unit) {
      const int64_t image = unit / groups, begin = unit % groups * group;
      const int64_t end = std::min(windows.c, begin + group);
      Cell* const channels = result.mutable_data<Cell>() + image * result.columns() + begin * channel_cells;
      std::fill_n(channels, (end - begin) * channel_cells, Cell{0});
      // Rows of windows from the last to the first, as FoldChannel asks.
      for (int64_t row_end = windows.p; row_end > 0; row_end -= rows) {
        if (IsCancelled(call.context.cancelled)) return;
        const int64_t row = std::max<int64_t>(0, row_end - rows), here = (row_end - row) * windows.q;
        GemmOf<Cell> product{.m = (end - begin) * area,
                             .n = here,
                             .k = windows.k,
                             .a = filters.data<Cell>() + begin * area,
                             .a_row = 1,
                             .a_column = windows.Filter(),
                             .b = gradient.data<Cell>() + image * gradient.columns() + row * windows.q,
                             .b_row = places,
                             .c_row = here};
        WriteCells(of_windows.data(), &product);
        Run(product);
        for (int64_t channel = 0; channel < end - begin; ++channel)
          FoldChannel(windows, row, row_end, of_windows.data() + channel * area * here,
                      channels + channel * channel_cells);
      }
    }
  });
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  return Value(std::move(result));
}

Result<Value> RunBackwardData(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const Windows windows, GivenWindows(call, kShapes, WindowForm::kFilter));
  HEDDLE_RETURN_IF_ERROR(CheckInputs(call.node.op, windows, call.inputs[kFilters]->matrix().shape(),
                                     call.input_infos[kGradient].shape, StatusCode::kFailedPrecondition));
  return HoldSingles(call, {kFilters, kGradient}) ? FoldBack<float>(call, windows)
                                                  : FoldBack<double>(call, windows);
}
bool TakesSingles(const KernelCall& call) { return HoldSingles(call, {kFilters, kGradient}); }

Cost BackwardDataCost(const Node& node, std::span<const ValueInfo> inputs) {
  const Shape &filters = inputs[kFilters].shape, &gradient = inputs[kGradient].shape;
  if (!filters.IsKnown() || !gradient.IsKnown() || !node.info.shape.IsKnown()) return {};
  const auto cells = static_cast<double>(gradient.Cells());
  return {.work = kWorkOfMultiplyAdd * cells * static_cast<double>(filters.columns),
          .bytes = 8 * (cells + static_cast<double>(node.info.shape.Cells()))};
}

// The gradient of the windows of one task, where a row of windows does not have more.
double BackwardDataWorkingBytes(const Node&, std::span<const ValueInfo>) {
  return sizeof(double) * kGradientCells;
}

// The sum of G * result is that of conv2d(G, W) * dout.
void DifferentiateBackwardData(AdjointCall& call) {
  const auto with_numbers = [&](NodeId first, NodeId second) {
    std::vector<NodeId> inputs = {first, second};
    for (size_t i = kShapes; i < 14; ++i) inputs.push_back(call.Input(i));
    return inputs;
  };
  if (call.IsWanted(kFilters))
    call.Give(kFilters,
              call.Add("conv2d_backward_filter", with_numbers(call.Adjoint(), call.Input(kGradient))));
  if (call.IsWanted(kGradient))
    call.Give(kGradient, call.Add("conv2d", with_numbers(call.Adjoint(), call.Input(kFilters))));
}

}  // namespace

/// conv2d_backward_data(W, dout, input_shape=, filter_shape=, stride=, padding=): the gradient of conv2d by
/// its images, dout being that by its result.
///
/// Shapes:  W is K x C*R*S, dout N x K*P*Q, the result N x C*H*W. Format: dense.
/// Errors:  as conv2d.
/// Order:   for each cell of a filter, of row i and column j, one chain s = fma(w, dout, s) over the filters
///          from +0.0, + 0.0 at its end; a cell of an image adds those of its windows with i, then j,
///          ascending, from +0.0. Of floats chains are as those of products, and cells add up in floats.
/// Cost:    2 * N*K*P*Q * C*R*S; a product for a few rows of windows of an image, its result folded back.
extern constexpr Operator kConv2dBackwardData = {
    .name = "conv2d_backward_data",
    .form = CallForm::kNamed,
    .parameters = "W dout input_shape[4] filter_shape[4] stride[2] padding[2]",
    .min_inputs = 14,
    .max_inputs = 14,
    .infer = InferBackwardData,
    .row_rule = RowWise,
    .input_use = GradientByRows,
    .cost = BackwardDataCost,
    .run = RunBackwardData,
    .takes_singles = TakesSingles,
    .storages = Storages::kDense,
    .working_bytes = BackwardDataWorkingBytes,
    .adjoints = "*; *; 0",
    .differentiate = DifferentiateBackwardData};

}  // namespace heddle::ops
