// SPDX-License-Identifier: Apache-2.0
#include "ops/arguments.h"
#include "ops/parallel.h"
#include "ops/simd/elementwise.h"

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

RowRule RowWise(const Node&, std::span<const ValueInfo>) { return RowRule::kRowWise; }
InputUse ImagesByRows(const Node&, std::span<const ValueInfo>, int i) {
  return i == kImages ? InputUse::kRows : InputUse::kWhole;
}

Result<Value> RunBias(const KernelCall& call, BinaryCode code) {
  const Matrix& x = call.inputs[kImages]->matrix();
  const Matrix& bias = call.inputs[kBias]->matrix();
  HEDDLE_RETURN_IF_ERROR(CheckBias(call.node.op, x.shape(), bias.shape(), StatusCode::kFailedPrecondition));
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(x.rows(), x.columns()));
  const int64_t channels = bias.rows(), cells = channels == 0 ? 0 : x.columns() / channels;
  const BinaryKernel kernel = SelectedElementwiseKernels().Of(code, Operands::kCellsScalar);
  ParallelFor(x.rows() * channels, kTaskCells / (cells + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      kernel(x.data() + i * cells, bias.data() + i % channels, result.mutable_data() + i * cells, cells,
             false);
  });
  return Value(std::move(result));
}

constexpr Operator Bias(std::string_view name, Result<Value> (*run)(const KernelCall&),
                        std::string_view adjoints) {
  return {.name = name,
          .form = CallForm::kPositional,
          .parameters = "X b",
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = InferBias,
          .row_rule = RowWise,
          .input_use = ImagesByRows,
          .run = run,
          .storages = Storages::kDense,
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
    "bias_add", [](const KernelCall& call) { return RunBias(call, BinaryCode::kAdd); },
    "dy; rowSums(matrix(colSums(dy), nrow(b), ncol(X) %/% nrow(b)))");
extern constexpr Operator kBiasMultiply = Bias(
    "bias_multiply", [](const KernelCall& call) { return RunBias(call, BinaryCode::kMultiply); },
    "bias_multiply(dy, b); rowSums(matrix(colSums(dy * X), nrow(b), ncol(X) %/% nrow(b)))");

}  // namespace heddle::ops
