// SPDX-License-Identifier: Apache-2.0
#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
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

Result<Value> RunCumsumprod(const KernelCall& call) {
  const Matrix& x = call.inputs[0]->matrix();
  HEDDLE_RETURN_IF_ERROR(CheckTwoColumns(x.shape(), StatusCode::kFailedPrecondition));
  HEDDLE_ASSIGN_OR_RETURN(const Matrix cells, AsDense(x));
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(x.rows(), 1));
  double last = 0;
  for (int64_t i = 0; i < x.rows(); ++i) {
    const double product = cells.data()[2 * i + 1] * last;
    last = cells.data()[2 * i] + product;
    result.mutable_data()[i] = last;
  }
  return Value(std::move(result));
}

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
/// Cost:    reads X once; one rank, one thread.
extern constexpr Operator kCumsumprod = {.name = "cumsumprod",
                                         .form = CallForm::kPositional,
                                         .parameters = "X",
                                         .min_inputs = 1,
                                         .max_inputs = 1,
                                         .infer = InferCumsumprod,
                                         .run = RunCumsumprod,
                                         .adjoints = "*",
                                         .differentiate = DifferentiateCumsumprod};

}  // namespace heddle::ops
