// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "core/values/panels.h"
#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/base/machine_constants.h"
#include "ops/base/parallel.h"
#include "ops/elementwise/single_precision.h"
#include "ops/neural/cell_types.h"
#include "ops/neural/check_shape.h"
#include "ops/neural/unfold.h"
#include "ops/product/matmul_gemm.h"
#include "ops/product/matmul_pack.h"
#include "ops/reduction/payload_parts.h"
#include "ops/reduction/reduction_tree.h"
#include "ops/simd/product/gemm.h"
#include "ops/simd/transpose.h"

namespace heddle::ops {
namespace {

enum Input { kImages, kGradient, kShapes };

// Images of a leaf of the tree: a granule has a multiple of them, and a mini-batch several leaves for the
// threads, while joining leaves stays small beside the products.
constexpr int64_t kLeafImages = 8;
// Gradients of more cells are computed in tiles, so that the nodes in flight stay small.
constexpr int64_t kWide = 1 << 16;
constexpr int64_t kTileFilters = 256;
// Cells of unfolded windows that a task holds, where a few windows do not have more: they stay in the
// second-level cache beside what is added up.
constexpr int64_t kUnfoldedCells = 48 << 10;
constexpr int64_t kLeastWindows = 16, kMostWindows = 256;

// Rows of unfolded windows that lie multiples of 512 bytes apart share few places of the first-level cache:
// so many cells are left free behind each.
constexpr int64_t kFreeCells = 8;

// Of an image; of floats whole blocks, whose chains end.
template <typename Cell>
int64_t WindowsTogether(int64_t cells) {
  constexpr int64_t kUnit = std::is_same_v<Cell, float> ? kSingleBlock : 8;
  return std::clamp(kUnfoldedCells / cells / kUnit * kUnit, std::max(kUnit, kLeastWindows), kMostWindows);
}

Status CheckInputs(std::string_view op, const Windows& windows, Shape images, Shape gradient,
                   StatusCode code) {
  HEDDLE_RETURN_IF_ERROR(CheckShape(op, "X", images, {windows.n, windows.Image()}, code));
  return CheckShape(op, "dout", gradient, {windows.n, windows.Results()}, code);
}

Result<ValueInfo> InferBackwardFilter(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, kImages, "argument 1"));
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, kGradient, "argument 2"));
  HEDDLE_ASSIGN_OR_RETURN(const Windows windows, InferWindows(context, kShapes, WindowForm::kFilter));
  HEDDLE_RETURN_IF_ERROR(CheckInputs(context.node.op, windows, context.inputs[kImages].shape,
                                     context.inputs[kGradient].shape, StatusCode::kInvalidArgument));
  // Where the windows are not known yet, the size of the result is not either: then they are checked first.
  const bool known = windows.n != kUnknown && windows.Results() != kUnknown;
  return ValueInfo::OfMatrix({windows.k, known ? windows.Filter() : kUnknown});
}

RowRule ReduceRowRule(const Node&, std::span<const ValueInfo>) { return RowRule::kReduce; }
InputUse MatricesByRows(const Node&, std::span<const ValueInfo>, int i) {
  return i < kShapes ? InputUse::kRows : InputUse::kWhole;
}

Reduction ReductionOf(const KernelCall& call) {
  const Shape& filters = call.node.info.shape;
  return {.join = Join::kSum,
          .width = filters.Cells(),
          .leaf_cells = kLeafImages * (call.input_infos[kImages].shape.columns + 1),
          .cancelled = call.context.cancelled};
}

// Images [begin, end) of the pieces at hand.
struct Images {
  int64_t begin, end;
};

// One tile of a leaf: rows are filters, columns cells of a filter. It is computed turned, as rows of cells
// times columns of filters, since windows are unfolded fastest one cell after the other. The windows of an
// image are multiplied a few at a time; every chain goes on from one to the next.
template <typename Cell>
void AddLeaf(const Windows& windows, const Matrix& x, const Matrix& gradient, Images images, const Tile& tile,
             double* payload) {
  const int64_t places = windows.Places();
  const int64_t count = std::min(places, WindowsTogether<Cell>(tile.columns)), stride = count + kFreeCells;
  const PackedCells<Cell> unfolded(stride * tile.columns), of_filters(count * tile.rows);
  AlignedArray turned(tile.Cells());
  std::fill_n(turned.data(), tile.Cells(), 0.0);
  for (int64_t image = images.begin; image < images.end; ++image)
    for (int64_t begin = 0; begin < places; begin += count) {
      const int64_t end = std::min(places, begin + count);
      Unfold(windows, x.data<Cell>() + image * x.columns(), begin, end, tile.column,
             tile.column + tile.columns, unfolded.data(), stride);
      simd::Transpose(gradient.data<Cell>() + image * gradient.columns() + tile.row * places + begin, places,
                      tile.rows, end - begin, of_filters.data(), tile.rows);
      Run(GemmOf<Cell>{.m = tile.columns,
                       .n = tile.rows,
                       .k = end - begin,
                       .a = unfolded.data(),
                       .a_row = stride,
                       .b = of_filters.data(),
                       .b_row = tile.rows,
                       .c = turned.data(),
                       .c_row = tile.rows,
                       .accumulate = true});
    }
  simd::Transpose(turned.data(), tile.rows, tile.columns, tile.rows, payload, tile.columns);
}

template <typename Cell>
Result<Matrix> Partial(const KernelCall& call, const Windows& windows, int64_t row_begin, int64_t row_end) {
  const Matrix& x = call.inputs[kImages]->matrix();
  const Matrix& gradient = call.inputs[kGradient]->matrix();
  const int64_t begin = row_begin == row_end ? 0 : row_begin / kLeafImages;
  const int64_t end = row_begin == row_end ? 0 : CeilDivide(row_end, kLeafImages);
  const Reduction reduction = ReductionOf(call);
  const int64_t filters = windows.k, cells = windows.Filter();
  const auto images_of = [&](int64_t leaf) {
    return Images{leaf * kLeafImages - row_begin, std::min(row_end, (leaf + 1) * kLeafImages) - row_begin};
  };
  const int64_t threads = ParallelThreads();
  if (reduction.width <= kWide && end - begin >= threads)
    return ReduceLeaves(reduction, begin, end, [&](int64_t leaf, double* payload) {
      AddLeaf<Cell>(windows, x, gradient, images_of(leaf), Tile{0, 0, filters, cells}, payload);
      return true;
    });
  const int64_t tile_filters = std::min(filters, kTileFilters);
  const int64_t tile_cells =
      std::clamp<int64_t>(CeilDivide(cells, 2 * threads), std::min<int64_t>(32, cells), kWide / tile_filters);
  return ReduceTiles(reduction, begin, end, Tiling{filters, cells, tile_filters, tile_cells},
                     [&](const Tile& tile, int64_t leaf, double* payload) {
                       AddLeaf<Cell>(windows, x, gradient, images_of(leaf), tile, payload);
                       return true;
                     });
}

Result<Matrix> Finish(const KernelCall& call, const Matrix& nodes) {
  const Shape& shape = call.node.info.shape;
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(shape.rows, shape.columns));
  HEDDLE_ASSIGN_OR_RETURN(const RootPayload root, JoinNodes(ReductionOf(call), nodes));
  ParallelFor(result.cells(), kWide, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) result.mutable_data()[i] = root[i] + 0.0;
  });
  return result;
}

Result<Value> RunBackwardFilter(const KernelCall& call) {
  if (call.phase == Phase::kFinish) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix result, Finish(call, call.inputs[0]->matrix()));
    return Value(std::move(result));
  }
  HEDDLE_ASSIGN_OR_RETURN(const Windows windows, GivenWindows(call, kShapes, WindowForm::kFilter));
  HEDDLE_RETURN_IF_ERROR(CheckInputs(call.node.op, windows, call.input_infos[kImages].shape,
                                     call.input_infos[kGradient].shape, StatusCode::kFailedPrecondition));
  const bool whole = call.phase == Phase::kWhole, singles = HoldSingles(call, {kImages, kGradient});
  const int64_t begin = whole ? 0 : call.row_begin, end = whole ? windows.n : call.row_end;
  HEDDLE_ASSIGN_OR_RETURN(Matrix nodes, singles ? Partial<float>(call, windows, begin, end)
                                                : Partial<double>(call, windows, begin, end));
  if (!whole) return Value(std::move(nodes));
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Finish(call, nodes));
  if (singles) {
    HEDDLE_ASSIGN_OR_RETURN(result, Narrow(result));
  }
  return Value(std::move(result));
}
bool TakesSingles(const KernelCall& call) {
  return call.phase != Phase::kFinish && call.phase != Phase::kStage &&
         HoldSingles(call, {kImages, kGradient});
}

PayloadUnits FiltersOf(const Node& node, std::span<const ValueInfo> inputs, size_t) {
  const Shape& shape = node.info.shape;
  if (!shape.IsKnown() || inputs[kImages].shape.rows == kUnknown) return {};
  return {.count = shape.rows, .bytes = 8 * static_cast<double>(shape.Cells()), .by_rows = true};
}

Status RunPart(const StageCall& call, std::span<Value> outputs) {
  const Shape& shape = call.node.info.shape;
  const PayloadLayout layout{.units = shape.rows,
                             .stride = shape.Cells(),
                             .unit_cells = shape.columns,
                             .leaves = CeilDivide(call.input_infos[kImages].shape.rows, kLeafImages)};
  return RunReductionStage(
      call, layout,
      [&](const double* root, const auto&) -> Result<Matrix> {
        HEDDLE_ASSIGN_OR_RETURN(Matrix part, Matrix::Dense(call.end - call.begin, shape.columns));
        for (int64_t i = 0; i < part.cells(); ++i) part.mutable_data()[i] = root[i] + 0.0;
        return part;
      },
      outputs);
}

constexpr StagedForm kParts = {.stages = kReductionStages, .units = FiltersOf, .run = RunPart};

Cost BackwardFilterCost(const Node& node, std::span<const ValueInfo> inputs) {
  const Shape &x = inputs[kImages].shape, &gradient = inputs[kGradient].shape, &result = node.info.shape;
  if (!x.IsKnown() || !gradient.IsKnown() || !result.IsKnown()) return {};
  const auto cells = static_cast<double>(gradient.Cells());
  return {.work = kWorkOfMultiplyAdd * cells * static_cast<double>(result.columns),
          .bytes = 8 * (cells + static_cast<double>(x.Cells()))};
}

// The unfolded windows and a tile of one task.
double BackwardFilterWorkingBytes(const Node&, std::span<const ValueInfo>) {
  return sizeof(double) * (kUnfoldedCells + kWide);
}

// The sum of G * result is that of conv2d(X, G) * dout.
void DifferentiateBackwardFilter(AdjointCall& call) {
  const auto with_numbers = [&](NodeId first, NodeId second) {
    std::vector<NodeId> inputs = {first, second};
    for (size_t i = kShapes; i < 14; ++i) inputs.push_back(call.Input(i));
    return inputs;
  };
  if (call.IsWanted(kImages))
    call.Give(kImages, call.Add("conv2d_backward_data", with_numbers(call.Adjoint(), call.Input(kGradient))));
  if (call.IsWanted(kGradient))
    call.Give(kGradient, call.Add("conv2d", with_numbers(call.Input(kImages), call.Adjoint())));
}

}  // namespace

/// conv2d_backward_filter(X, dout, input_shape=, filter_shape=, stride=, padding=): the gradient of conv2d by
/// its filters, dout being that by its result.
///
/// Shapes:  X is N x C*H*W, dout N x K*P*Q, the result K x C*R*S. Format: dense.
/// Errors:  as conv2d.
/// Order:   in panels of 8 images each cell one chain s = fma(dout, x, s) over images and their windows
///          ascending, from +0.0; panels along the tree; + 0.0 at the end. Padding takes part as 0.0. Of
///          floats a chain has kSingleBlock windows of an image, and chains are joined in doubles.
/// Cost:    2 * N*K*P*Q * C*R*S; unfolds a few windows at a time.
extern constexpr Operator kConv2dBackwardFilter = {
    .name = "conv2d_backward_filter",
    .form = CallForm::kNamed,
    .parameters = "X dout input_shape[4] filter_shape[4] stride[2] padding[2]",
    .min_inputs = 14,
    .max_inputs = 14,
    .infer = InferBackwardFilter,
    .row_rule = ReduceRowRule,
    .input_use = MatricesByRows,
    .staged = &kParts,
    .cost = BackwardFilterCost,
    .run = RunBackwardFilter,
    .takes_singles = TakesSingles,
    .storages = Storages::kDense,
    .working_bytes = BackwardFilterWorkingBytes,
    .adjoints = "*; *; 0",
    .differentiate = DifferentiateBackwardFilter};

}  // namespace heddle::ops
