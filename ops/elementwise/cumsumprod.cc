// SPDX-License-Identifier: Apache-2.0
#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/base/device_forms.h"
#include "ops/base/stages.h"
#include "ops/cells/storage.h"

namespace heddle::ops {
namespace {

Status CheckTwoColumns(const Shape& shape, StatusCode code) {
  if (shape.columns == kUnknown || shape.columns == 2) return OkStatus();
  return Status(code, fmt::format("cumsumprod: needs two columns, got {}", shape))
      .WithNote("cbind(a, b) puts two columns beside each other");
}

Result<ValueInfo> InferCumsumprod(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "argument 1"));
  HEDDLE_RETURN_IF_ERROR(CheckTwoColumns(context.inputs[0].shape, StatusCode::kInvalidArgument));
  return ValueInfo::OfMatrix({context.inputs[0].shape.rows, 1});
}

// Rows of X from `last` on, the result of the row before them, which becomes that of the last of them.
Result<Value> RunRows(const KernelContext& context, const Matrix& x, double* last) {
  HEDDLE_ASSIGN_OR_RETURN(const Matrix cells, AsDense(x));
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(x.rows(), 1));
  constexpr int64_t kRowsBetweenPolls = 1 << 20;
  for (int64_t i = 0; i < x.rows(); ++i) {
    if (i % kRowsBetweenPolls == 0 && IsCancelled(context.cancelled)) return Cancelled("cancelled");
    const double product = cells.data()[2 * i + 1] * *last;
    *last = cells.data()[2 * i] + product;
    result.mutable_data()[i] = *last;
  }
  return Value(std::move(result));
}

Result<Value> RunCumsumprod(const KernelCall& call) {
  const Matrix& x = call.inputs[0]->matrix();
  HEDDLE_RETURN_IF_ERROR(CheckTwoColumns(x.shape(), StatusCode::kFailedPrecondition));
  double last = 0;
  return RunRows(call.context, x, &last);
}

// Ranks one after the other: each goes on from the last result of the one before.
Status RunStage(const StageCall& call, std::span<Value> outputs) {
  if (call.stage == 1) {
    outputs[0] = call.Received(0);
    return OkStatus();
  }
  HEDDLE_RETURN_IF_ERROR(CheckTwoColumns(call.input_infos[0].shape, StatusCode::kFailedPrecondition));
  double last = call.before == nullptr ? 0 : call.before->matrix().At(0, 0);
  HEDDLE_ASSIGN_OR_RETURN(outputs[0], RunRows(call.context, call.inputs[0]->matrix(), &last));
  HEDDLE_ASSIGN_OR_RETURN(Matrix carried, FilledMatrix(1, 1, last));
  outputs[1] = Value(std::move(carried));
  return OkStatus();
}

constexpr Reach kRowsAndLast[] = {Reach::kHere, Reach::kNext};
constexpr Stage kStages[] = {{.outputs = kRowsAndLast, .reads_inputs = true}, {}};
constexpr StagedForm kStaged = {.stages = kStages, .result = StagedResult::kSameRows, .run = RunStage};

// g[i] = dy[i] + X[i+1,2] * g[i+1] is the adjoint of X[i,1], g[i] * y[i-1] that of X[i,2].
void DifferentiateCumsumprod(AdjointCall& call) {
  const NodeId second = call.Literal(Scalar(2));
  const NodeId factors = call.Add("index", {call.Input(0), kNoNode, kNoNode, second, second});
  const NodeId g = call.Formula("rev(cumsumprod(cbind(rev(dy), rev(roll(F, -1)))))", {{"F", factors}});
  call.Give(0, call.Formula("cbind(G, G * roll(y, 1) * (seq(1, nrow(X)) > 1))", {{"G", g}}));
}

}  // namespace

/// cumsumprod(X): y[i] = X[i,1] + X[i,2] * y[i-1] from y[0] = 0.
///
/// Shapes:  X is m x 2, the result m x 1.
/// Order:   one row after the other, product and sum rounded each.
/// Cost:    reads X once; one thread.
/// Rows:    several ranks compute theirs one after the other, and hand on one number.
extern constexpr Operator kCumsumprod = {.name = "cumsumprod",
                                         .form = CallForm::kPositional,
                                         .parameters = "X",
                                         .min_inputs = 1,
                                         .max_inputs = 1,
                                         .infer = InferCumsumprod,
                                         .input_use = AllByRows,
                                         .staged = &kStaged,
                                         .run = RunCumsumprod,
                                         .run_on_device = CumsumprodOnDevice,
                                         .adjoints = "*",
                                         .differentiate = DifferentiateCumsumprod};

}  // namespace heddle::ops
