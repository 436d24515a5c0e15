// SPDX-License-Identifier: Apache-2.0
#include "ops/neural/pooling.h"

#include <algorithm>
#include <bit>
#include <type_traits>
#include <vector>

#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/base/parallel.h"
#include "ops/base/row_rules.h"
#include "ops/base/stages.h"
#include "ops/neural/cell_types.h"
#include "ops/neural/check_shape.h"

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

// `pool(windows, channel, row, out)` writes a row of the result of a channel.
template <typename Cell, typename Pool>
Result<Value> PoolRows(const KernelCall& call, const Windows& windows, const Pool& pool) {
  const Matrix& x = call.inputs[kImages]->matrix();
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(x.rows(), windows.Results(), kElementTypeOf<Cell>));
  const int64_t places = windows.Places();
  // Rows of channels: images without gaps are such rows, too.
  ParallelFor(x.rows() * windows.c, kTaskCells / (places + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t channel = begin; channel < end; ++channel) {
      if (IsCancelled(call.context.cancelled)) return;
      const Cell* const cells = x.data<Cell>() + channel * windows.h * windows.w;
      Cell* const out = result.mutable_data<Cell>() + channel * places;
      for (int64_t i = 0; i < windows.p; ++i) pool(windows, cells, i, out + i * windows.q);
    }
  });
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  return Value(std::move(result));
}

bool TakesSingles(const KernelCall& call) { return HoldSingles(call, {kImages}); }

template <typename Pool>
Result<Value> RunPool(const KernelCall& call, const Pool& pool) {
  HEDDLE_ASSIGN_OR_RETURN(const Windows windows, GivenWindows(call, kShapes, WindowForm::kPool));
  HEDDLE_RETURN_IF_ERROR(CheckShape(call.node.op, "X", call.input_infos[kImages].shape,
                                    {windows.n, windows.Image()}, StatusCode::kFailedPrecondition));
  return TakesSingles(call) ? PoolRows<float>(call, windows, pool) : PoolRows<double>(call, windows, pool);
}

// NaN if either is; -0.0 is less than 0.0. Without branches, so that several are computed at once: of equal
// numbers only zeros have different bits, and what all of them have is that of 0.0.
template <typename Cell>
Cell Larger(Cell a, Cell b) {
  using Bits = std::conditional_t<std::is_same_v<Cell, float>, uint32_t, uint64_t>;
  const Cell of_equal = std::bit_cast<Cell>(std::bit_cast<Bits>(a) & std::bit_cast<Bits>(b));
  const Cell larger = a > b ? a : b, of_numbers = a == b ? of_equal : larger;
  return a != a ? a : of_numbers;
}

Result<Value> RunMaxPool(const KernelCall& call) {
  return RunPool(call, []<typename Cell>(const Windows& windows, const Cell* cells, int64_t row, Cell* out) {
    std::fill_n(out, windows.q, kLeastOfPool<Cell>);
    EachCellOfWindows(windows, cells, row,
                      [&](const Cell* line, int64_t step, int64_t begin, int64_t end, int64_t) {
                        WithStep(step, [to = out + begin, line, count = end - begin](auto known) {
                          for (int64_t j = 0; j < count; ++j) to[j] = Larger(to[j], line[j * known]);
                        });
                      });
  });
}

// In doubles, rounded once.
Result<Value> RunAveragePool(const KernelCall& call) {
  return RunPool(call, []<typename Cell>(const Windows& windows, const Cell* cells, int64_t row, Cell* out) {
    std::vector<double> sums(static_cast<size_t>(windows.q));
    EachCellOfWindows(windows, cells, row,
                      [&](const Cell* line, int64_t step, int64_t begin, int64_t end, int64_t) {
                        WithStep(step, [to = sums.data() + begin, line, count = end - begin](auto known) {
                          for (int64_t j = 0; j < count; ++j) to[j] += static_cast<double>(line[j * known]);
                        });
                      });
    const double area = static_cast<double>(windows.r) * static_cast<double>(windows.s);
    for (int64_t j = 0; j < windows.q; ++j) out[j] = static_cast<Cell>(sums[static_cast<size_t>(j)] / area);
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
          .input_use = FirstByRows,
          .run = run,
          .takes_singles = TakesSingles,
          .storages = Storages::kDense,
          .adjoints = "*; 0",
          .differentiate = DifferentiatePool};
}

}  // namespace

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
