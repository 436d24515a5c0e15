// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/cells/storage.h"
#include "ops/elementwise/elementwise_sparse.h"

namespace heddle::ops {
namespace {

enum Input { kTarget, kDiagonal, kValues };

// The values of X where they stay, or ones; what is not known yet may be either.
Result<ValueInfo> InferTriangle(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, kTarget, "target"));
  for (const int i : {kDiagonal, kValues})
    if (IsGiven(context.node, i))
      HEDDLE_RETURN_IF_ERROR(RequireScalar(context, i, i == kDiagonal ? "diag" : "values"));
  const Scalar* values = KnownScalar(context, kValues);
  const ValueInfo& x = context.inputs[kTarget];
  const bool keeps = values != nullptr && values->AsBoolean();
  return ValueInfo::OfMatrix(x.shape, keeps ? x.format : Format::kDense);
}

template <bool upper>
Result<Value> RunTriangle(const KernelCall& call) {
  const Matrix& x = call.inputs[kTarget]->matrix();
  const bool diagonal = BooleanOr(call, kDiagonal, false), values = BooleanOr(call, kValues, false);
  HEDDLE_ASSIGN_OR_RETURN(const Matrix cells, AsDense(x));
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, FilledMatrix(x.rows(), x.columns(), 0));
  // Of a matrix of zeros, the triangle of ones is zeros, too (language reference 3.1).
  const int64_t n = x.columns(), shift = diagonal ? 0 : 1;
  if (values || cells.CountNonzeros() > 0) {
    for (int64_t i = 0; i < x.rows(); ++i) {
      const int64_t begin = upper ? std::min(i + shift, n) : 0, end = upper ? n : std::min(i + 1 - shift, n);
      for (int64_t j = begin; j < end; ++j)
        result.mutable_data()[i * n + j] = values ? cells.data()[i * n + j] : 1;
    }
  }
  if (call.node.info.format == Format::kSparse) {
    HEDDLE_ASSIGN_OR_RETURN(result, AsSparse(result));
  }
  return Value(std::move(result));
}

// The triangle of ones does not change; that of the values has the same triangle of adjoints.
void DifferentiateTriangle(AdjointCall& call) {
  const std::vector<NodeId>& inputs = call.node().inputs;
  const auto is_given = [&](size_t i) { return i < inputs.size() && inputs[i] != kNoNode; };
  if (!is_given(kValues)) return;
  const NodeId diagonal = is_given(kDiagonal) ? call.Input(kDiagonal) : call.Literal(Scalar(false));
  const NodeId cells = call.Add(call.node().op, {call.Adjoint(), diagonal, call.Literal(Scalar(true))});
  call.Give(0, call.Add("*", {cells, call.Add("as.double", {call.Input(kValues)})}));
}

constexpr Operator Triangle(std::string_view name, Result<Value> (*run)(const KernelCall&)) {
  return {.name = name,
          .form = CallForm::kNamed,
          .parameters = "target diag? values?",
          .min_inputs = 1,
          .max_inputs = 3,
          .infer = InferTriangle,
          .run = run,
          .adjoints = "*; 0",
          .differentiate = DifferentiateTriangle};
}

}  // namespace

/// upper.tri(target=X, diag=FALSE, values=FALSE): ones above the diagonal, and on it with diag, zeros
/// elsewhere; with values the cells of X instead of ones. lower.tri: below.
///
/// Shapes:  X is m x n, the result, too.
/// Value:   without values a matrix of zeros gives zeros, any other ones in the whole triangle.
/// Format:  X's if it is known that values is TRUE, else dense.
/// Cost:    m*n cells, written once.
extern constexpr Operator kUpperTriangle = Triangle("upper.tri", RunTriangle<true>);
extern constexpr Operator kLowerTriangle = Triangle("lower.tri", RunTriangle<false>);

}  // namespace heddle::ops
