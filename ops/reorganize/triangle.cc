// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/base/stages.h"
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

// Rows [first, ...) of the triangle, from those rows of X. `ones`: whether a triangle of ones has any.
Result<Value> Triangle(const Matrix& x, int64_t first, bool upper, bool diagonal, bool values, bool ones,
                       Format format) {
  HEDDLE_ASSIGN_OR_RETURN(const Matrix cells, AsDense(x));
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, FilledMatrix(x.rows(), x.columns(), 0));
  // Of a matrix of zeros, the triangle of ones is zeros, too (language reference 3.1).
  const int64_t n = x.columns(), shift = diagonal ? 0 : 1;
  if (values || ones) {
    for (int64_t i = 0; i < x.rows(); ++i) {
      const int64_t row = first + i, begin = upper ? std::min(row + shift, n) : 0;
      const int64_t end = upper ? n : std::min(row + 1 - shift, n);
      for (int64_t j = begin; j < end; ++j)
        result.mutable_data()[i * n + j] = values ? cells.data()[i * n + j] : 1;
    }
  }
  if (format == Format::kSparse) {
    HEDDLE_ASSIGN_OR_RETURN(result, AsSparse(result));
  }
  return Value(std::move(result));
}

bool IsUpper(const Node& node) { return node.op == "upper.tri"; }

Result<Value> RunTriangle(const KernelCall& call) {
  const Matrix& x = call.inputs[kTarget]->matrix();
  return Triangle(x, 0, IsUpper(call.node), BooleanOr(call, kDiagonal, false),
                  BooleanOr(call, kValues, false), x.CountNonzeros() > 0, call.node.info.format);
}

// Whether X is all zeros is known when every rank has looked at its rows.
Status RunTriangleStage(const StageCall& call, std::span<Value> outputs) {
  const Matrix& x = call.inputs[kTarget]->matrix();
  if (call.stage == 0) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix count, FilledMatrix(1, 1, static_cast<double>(x.CountNonzeros())));
    outputs[0] = Value(std::move(count));
    return OkStatus();
  }
  const auto is_true = [&](size_t i) {
    return i < call.inputs.size() && call.inputs[i] != nullptr && call.inputs[i]->scalar().AsBoolean();
  };
  const Matrix& counts = call.Received(0).matrix();
  const bool ones =
      std::any_of(counts.data(), counts.data() + counts.rows(), [](double count) { return count > 0; });
  HEDDLE_ASSIGN_OR_RETURN(outputs[0],
                          Triangle(x, call.rows.Begin(call.rank), IsUpper(call.node), is_true(kDiagonal),
                                   is_true(kValues), ones, call.node.info.format));
  return OkStatus();
}

constexpr Reach kCount[] = {Reach::kAll};
constexpr Stage kStages[] = {{.outputs = kCount, .reads_inputs = true}, {.reads_inputs = true}};
constexpr StagedForm kStaged = {
    .stages = kStages, .result = StagedResult::kSameRows, .run = RunTriangleStage};

// The triangle of ones does not change; that of the values has the same triangle of adjoints.
void DifferentiateTriangle(AdjointCall& call) {
  const std::vector<NodeId>& inputs = call.node().inputs;
  const auto is_given = [&](size_t i) { return i < inputs.size() && inputs[i] != kNoNode; };
  if (!is_given(kValues)) return;
  const NodeId diagonal = is_given(kDiagonal) ? call.Input(kDiagonal) : call.Literal(Scalar(false));
  const NodeId cells = call.Add(call.node().op, {call.Adjoint(), diagonal, call.Literal(Scalar(true))});
  call.Give(0, call.Add("*", {cells, call.Add("as.double", {call.Input(kValues)})}));
}

constexpr Operator TriangleOperator(std::string_view name) {
  return {.name = name,
          .form = CallForm::kNamed,
          .parameters = "target diag? values?",
          .min_inputs = 1,
          .max_inputs = 3,
          .infer = InferTriangle,
          .input_use = FirstByRows,
          .staged = &kStaged,
          .run = RunTriangle,
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
extern constexpr Operator kUpperTriangle = TriangleOperator("upper.tri");
extern constexpr Operator kLowerTriangle = TriangleOperator("lower.tri");

}  // namespace heddle::ops
