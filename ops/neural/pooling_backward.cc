// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/base/parallel.h"
#include "ops/base/row_rules.h"
#include "ops/neural/cell_types.h"
#include "ops/neural/check_shape.h"
#include "ops/neural/pooling.h"
#include "ops/simd/cellwise/elementwise.h"

namespace heddle::ops {
namespace {

// Of max_pool_at the second input is no gradient.
enum Input { kImages, kGradient, kShapes, kOther = kGradient };

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

InputUse MatricesByRows(const Node&, std::span<const ValueInfo>, int i) {
  return i < kShapes ? InputUse::kRows : InputUse::kWhole;
}

// The first of the largest cells of each window in a row of the result; none where no cell is above the least
// finite number. Without branches, so that several windows are looked at at once.
// Places are numbers as wide as a cell, where a channel has no more cells.
template <typename Cell, typename Number>
class WindowMaxima {
 public:
  explicit WindowMaxima(int64_t windows)
      : most_(static_cast<size_t>(windows)), places_(static_cast<size_t>(windows)) {}

  void Find(const Windows& windows, const Cell* cells, int64_t row) {
    std::fill(most_.begin(), most_.end(), kLeastOfPool<Cell>);
    std::fill(places_.begin(), places_.end(), Number{-1});
    EachCellOfWindows(windows, cells, row,
                      [&](const Cell* line, int64_t step, int64_t begin, int64_t end, int64_t place) {
                        WithStep(step, [most = most_.data() + begin, places = places_.data() + begin, line,
                                        first = static_cast<Number>(place),
                                        count = static_cast<Number>(end - begin)](auto known) {
                          for (Number j = 0; j < count; ++j) {
                            const Cell cell = line[j * known];
                            const bool is_larger = cell > most[j];
                            places[j] = is_larger ? first + j * static_cast<Number>(known) : places[j];
                            most[j] = is_larger ? cell : most[j];
                          }
                        });
                      });
  }
  // In its channel; -1: none.
  int64_t PlaceOf(int64_t window) const { return places_[static_cast<size_t>(window)]; }

 private:
  std::vector<Cell> most_;
  std::vector<Number> places_;
};

// `spread(windows, channel, row, gradient, out)` adds the gradients of a row of windows to those of the cells
// of a channel, in doubles.
template <typename Cell, typename Number, typename Spread>
Result<Value> SpreadRows(const KernelCall& call, const Windows& windows, const Spread& spread) {
  const Matrix& x = call.inputs[kImages]->matrix();
  const Matrix& gradient = call.inputs[kGradient]->matrix();
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(x.rows(), windows.Image(), kElementTypeOf<Cell>));
  const int64_t places = windows.Places(), channel_cells = windows.h * windows.w;
  ParallelFor(x.rows() * windows.c, kTaskCells / (places + 1) + 1, [&](int64_t begin, int64_t end) {
    std::vector<double> sums(std::is_same_v<Cell, double> ? 0 : static_cast<size_t>(channel_cells));
    WindowMaxima<Cell, Number> maxima(windows.q);
    for (int64_t channel = begin; channel < end; ++channel) {
      if (IsCancelled(call.context.cancelled)) return;
      Cell* const out = result.mutable_data<Cell>() + channel * channel_cells;
      double* to = sums.data();
      if constexpr (std::is_same_v<Cell, double>) to = out;
      std::fill_n(to, channel_cells, 0.0);
      for (int64_t i = 0; i < windows.p; ++i)
        spread(windows, x.data<Cell>() + channel * channel_cells, i,
               gradient.data<Cell>() + channel * places + i * windows.q, maxima, to);
      if constexpr (!std::is_same_v<Cell, double>)
        SelectedElementwiseKernels().narrow(to, out, channel_cells);
    }
  });
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  return Value(std::move(result));
}

bool TakesSingles(const KernelCall& call) { return HoldSingles(call, {kImages, kGradient}); }

template <typename Spread>
Result<Value> RunPoolBackward(const KernelCall& call, const Spread& spread) {
  HEDDLE_ASSIGN_OR_RETURN(const Windows windows, GivenWindows(call, kShapes, WindowForm::kPool));
  HEDDLE_RETURN_IF_ERROR(CheckInputs(call.node.op, windows, call.input_infos[kImages].shape,
                                     call.input_infos[kGradient].shape, StatusCode::kFailedPrecondition));
  if (!TakesSingles(call)) return SpreadRows<double, int64_t>(call, windows, spread);
  return windows.h * windows.w > std::numeric_limits<int32_t>::max()
             ? SpreadRows<float, int64_t>(call, windows, spread)
             : SpreadRows<float, int32_t>(call, windows, spread);
}

Result<Value> RunMaxPoolBackward(const KernelCall& call) {
  return RunPoolBackward(call, []<typename Cell>(const Windows& windows, const Cell* cells, int64_t row,
                                                 const Cell* gradient, auto& maxima, double* out) {
    maxima.Find(windows, cells, row);
    for (int64_t j = 0; j < windows.q; ++j)
      if (const auto place = maxima.PlaceOf(j); place >= 0) out[place] += static_cast<double>(gradient[j]);
  });
}

Result<Value> RunAveragePoolBackward(const KernelCall& call) {
  return RunPoolBackward(call, []<typename Cell>(const Windows& windows, const Cell* cells, int64_t row,
                                                 const Cell* gradient, auto&, double* out) {
    const double area = static_cast<double>(windows.r) * static_cast<double>(windows.s);
    // A cell gets the share of an earlier window first, in which its column is a later one.
    EachCellOfWindows<true>(windows, cells, row,
                            [&](const Cell*, int64_t step, int64_t begin, int64_t end, int64_t place) {
                              for (int64_t j = begin; j < end; ++j)
                                out[place + (j - begin) * step] += static_cast<double>(gradient[j]) / area;
                            });
  });
}

// Both are linear in dout, and do not change by small steps of X.
std::vector<NodeId> WithNumbers(AdjointCall& call, std::vector<NodeId> inputs) {
  for (size_t i = kShapes; i < 12; ++i) inputs.push_back(call.Input(i));
  return inputs;
}
void DifferentiateMaxPoolBackward(AdjointCall& call) {
  call.Give(kGradient, call.Add("max_pool_at", WithNumbers(call, {call.Input(kImages), call.Adjoint()})));
}
void DifferentiateAveragePoolBackward(AdjointCall& call) {
  call.Give(kGradient, call.Add("avg_pool", WithNumbers(call, {call.Adjoint()})));
}

constexpr Operator PoolBackward(std::string_view name, Result<Value> (*run)(const KernelCall&),
                                void (*differentiate)(AdjointCall&)) {
  return {.name = name,
          .form = CallForm::kNamed,
          .parameters = "X dout input_shape[4] pool_size[2] stride[2] padding[2]",
          .min_inputs = 12,
          .max_inputs = 12,
          .infer = InferPoolBackward,
          .row_rule = RowWise,
          .input_use = MatricesByRows,
          .run = run,
          .takes_singles = TakesSingles,
          .storages = Storages::kDense,
          .adjoints = "0; *; 0",
          .differentiate = differentiate};
}

// The cells of Y at which max_pool takes those of X.
template <typename Cell, typename Number>
Result<Value> TakeAtMaxima(const KernelCall& call, const Windows& windows) {
  const Matrix &x = call.inputs[kImages]->matrix(), &y = call.inputs[kOther]->matrix();
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(x.rows(), windows.Results(), kElementTypeOf<Cell>));
  const int64_t places = windows.Places(), channel_cells = windows.h * windows.w;
  ParallelFor(x.rows() * windows.c, kTaskCells / (places + 1) + 1, [&](int64_t begin, int64_t end) {
    WindowMaxima<Cell, Number> maxima(windows.q);
    for (int64_t channel = begin; channel < end; ++channel) {
      if (IsCancelled(call.context.cancelled)) return;
      const Cell* const cells = y.data<Cell>() + channel * channel_cells;
      Cell* out = result.mutable_data<Cell>() + channel * places;
      for (int64_t i = 0; i < windows.p; ++i) {
        maxima.Find(windows, x.data<Cell>() + channel * channel_cells, i);
        for (int64_t j = 0; j < windows.q; ++j) {
          const int64_t place = maxima.PlaceOf(j);
          *out++ = place >= 0 ? cells[place] : Cell{0};
        }
      }
    }
  });
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  return Value(std::move(result));
}

Status CheckInputsOfMaxPoolAt(std::string_view op, const Windows& windows, Shape images, Shape other,
                              StatusCode code) {
  HEDDLE_RETURN_IF_ERROR(CheckShape(op, "X", images, {windows.n, windows.Image()}, code));
  return CheckShape(op, "Y", other, {windows.n, windows.Image()}, code);
}

Result<ValueInfo> InferMaxPoolAt(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, kImages, "argument 1"));
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, kOther, "argument 2"));
  HEDDLE_ASSIGN_OR_RETURN(const Windows windows, InferWindows(context, kShapes, WindowForm::kPool));
  HEDDLE_RETURN_IF_ERROR(CheckInputsOfMaxPoolAt(context.node.op, windows, context.inputs[kImages].shape,
                                                context.inputs[kOther].shape, StatusCode::kInvalidArgument));
  return ValueInfo::OfMatrix({windows.n, windows.Results()});
}

Result<Value> RunMaxPoolAt(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const Windows windows, GivenWindows(call, kShapes, WindowForm::kPool));
  HEDDLE_RETURN_IF_ERROR(CheckInputsOfMaxPoolAt(call.node.op, windows, call.input_infos[kImages].shape,
                                                call.input_infos[kOther].shape,
                                                StatusCode::kFailedPrecondition));
  return TakesSingles(call) ? TakeAtMaxima<float, int64_t>(call, windows)
                            : TakeAtMaxima<double, int64_t>(call, windows);
}

void DifferentiateMaxPoolAt(AdjointCall& call) {
  call.Give(kOther, call.Add("max_pool_backward", WithNumbers(call, {call.Input(kImages), call.Adjoint()})));
}

}  // namespace

/// max_pool_backward(X, dout, input_shape=, pool_size=, stride=, padding=): the gradient of max_pool by X,
/// dout being that by its result. It goes to the first cell of the window that is the largest; nowhere where
/// no cell is above the least finite number (NaN is not).
///
/// Shapes:  X is N x C*H*W, dout N x C*P*Q, the result as X. Format: dense.
/// Order:   a cell adds those of its windows, rows, then columns of windows ascending, from +0.0.
/// Cost:    N*C*P*Q * R*S comparisons.
extern constexpr Operator kMaxPoolBackward =
    PoolBackward("max_pool_backward", RunMaxPoolBackward, DifferentiateMaxPoolBackward);

/// avg_pool_backward(X, dout, input_shape=, pool_size=, stride=, padding=): the gradient of avg_pool; of X
/// only the size counts.
///
/// Shapes:  as max_pool_backward.
/// Order:   dout / (R*S), then as max_pool_backward.
/// Cost:    N*C*P*Q * R*S additions.
extern constexpr Operator kAveragePoolBackward =
    PoolBackward("avg_pool_backward", RunAveragePoolBackward, DifferentiateAveragePoolBackward);

/// max_pool_at(X, Y, input_shape=, pool_size=, stride=, padding=): of each window the cell of Y at the place
/// of the first largest cell of X, 0 where no cell is above the least finite number: the adjoint of dout in
/// max_pool_backward. Formed by gradient().
///
/// Shapes:  X and Y are N x C*H*W, the result N x C*P*Q. Format: dense. Exact.
/// Cost:    N*C*P*Q * R*S comparisons.
extern constexpr Operator kMaxPoolAt = {.name = "max_pool_at",
                                        .parameters = "X Y input_shape[4] pool_size[2] stride[2] padding[2]",
                                        .min_inputs = 12,
                                        .max_inputs = 12,
                                        .infer = InferMaxPoolAt,
                                        .row_rule = RowWise,
                                        .input_use = MatricesByRows,
                                        .run = RunMaxPoolAt,
                                        .takes_singles = TakesSingles,
                                        .storages = Storages::kDense,
                                        .adjoints = "0; *; 0",
                                        .differentiate = DifferentiateMaxPoolAt};

}  // namespace heddle::ops
