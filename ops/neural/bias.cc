// SPDX-License-Identifier: Apache-2.0
#include "ops/base/arguments.h"
#include "ops/base/parallel.h"
#include "ops/base/row_rules.h"
#include "ops/base/stages.h"
#include "ops/neural/cell_types.h"

namespace heddle::ops {
namespace {

enum Input { kImages, kBias };

constexpr int64_t kTaskCells = 1 << 15;

Status CheckBias(std::string_view op, Shape x, Shape bias, StatusCode code) {
  if (bias.columns != kUnknown && bias.columns != 1)
    return Status(code, fmt::format("{}: the second argument must be a column, not {}", op, bias));
  if (x.columns == kUnknown || bias.rows == kUnknown) return OkStatus();
  if (bias.rows > 0 ? x.columns % bias.rows == 0 : x.columns == 0) return OkStatus();
  return Status(code,
                fmt::format("{}: {} columns cannot be divided among {} channels", op, x.columns, bias.rows))
      .WithNote("the second argument has a number for each channel, the first as many columns for each");
}

Result<ValueInfo> InferBias(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, kImages, "argument 1"));
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, kBias, "argument 2"));
  const Shape x = context.inputs[kImages].shape;
  HEDDLE_RETURN_IF_ERROR(
      CheckBias(context.node.op, x, context.inputs[kBias].shape, StatusCode::kInvalidArgument));
  return ValueInfo::OfMatrix(x);
}

// `combine(x, b)` of each cell and the number of its channel. Sums and products of floats, rounded from
// doubles, are those of the processor's floats.
template <typename Cell, typename Combine>
Result<Value> RunCells(const KernelCall& call, const Combine& combine) {
  const Matrix& x = call.inputs[kImages]->matrix();
  const Matrix& bias = call.inputs[kBias]->matrix();
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(x.rows(), x.columns(), kElementTypeOf<Cell>));
  const int64_t channels = bias.rows(), cells = channels == 0 ? 0 : x.columns() / channels;
  ParallelFor(x.rows() * channels, kTaskCells / (cells + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Cell* const from = x.data<Cell>() + i * cells;
      const Cell of_channel = bias.data<Cell>()[i % channels];
      Cell* const to = result.mutable_data<Cell>() + i * cells;
      for (int64_t j = 0; j < cells; ++j) to[j] = combine(from[j], of_channel);
    }
  });
  return Value(std::move(result));
}

bool TakesSingles(const KernelCall& call) { return HoldSingles(call, {kImages, kBias}); }

template <typename Combine>
Result<Value> RunBias(const KernelCall& call, const Combine& combine) {
  HEDDLE_RETURN_IF_ERROR(CheckBias(call.node.op, call.inputs[kImages]->shape(), call.inputs[kBias]->shape(),
                                   StatusCode::kFailedPrecondition));
  return TakesSingles(call) ? RunCells<float>(call, combine) : RunCells<double>(call, combine);
}

constexpr Operator Bias(std::string_view name, Role role, Result<Value> (*run)(const KernelCall&),
                        std::string_view adjoints) {
  return {.name = name,
          .form = CallForm::kPositional,
          .parameters = "X b",
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = InferBias,
          .row_rule = RowWise,
          .input_use = FirstByRows,
          .run = run,
          .takes_singles = TakesSingles,
          .storages = Storages::kDense,
          .role = role,
          .adjoints = adjoints};
}

}  // namespace

/// bias_add(X, b): adds b[k] to every cell of channel k; bias_multiply(X, b) multiplies them.
///
/// Shapes:  X is N x K*L, b K x 1, the result as X: channel k has columns [k*L, (k+1)*L). Format: dense.
/// Errors:  a number of columns that K does not divide.
/// Order:   one rounding a cell.
/// Cost:    reads and writes X once.
extern constexpr Operator kBiasAdd = Bias(
    "bias_add", Role::kBiasAdd,
    [](const KernelCall& call) { return RunBias(call, [](auto x, auto b) { return x + b; }); },
    "dy; rowSums(matrix(colSums(dy), nrow(b), ncol(X) %/% nrow(b)))");
extern constexpr Operator kBiasMultiply = Bias(
    "bias_multiply", Role::kBiasMultiply,
    [](const KernelCall& call) { return RunBias(call, [](auto x, auto b) { return x * b; }); },
    "bias_multiply(dy, b); rowSums(matrix(colSums(dy * X), nrow(b), ncol(X) %/% nrow(b)))");

}  // namespace heddle::ops
