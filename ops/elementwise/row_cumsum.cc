// SPDX-License-Identifier: Apache-2.0
#include "ops/base/arguments.h"
#include "ops/base/parallel.h"
#include "ops/base/row_rules.h"
#include "ops/base/stages.h"
#include "ops/cells/storage.h"

namespace heddle::ops {
namespace {

Result<ValueInfo> InferRowCumsum(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "argument 1"));
  return ValueInfo::OfMatrix(context.inputs[0].shape);
}

Result<Value> RunRowCumsum(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const Matrix x, AsDense(call.inputs[0]->matrix()));
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(x.rows(), x.columns()));
  const int64_t n = x.columns();
  double* const out = result.mutable_data();
  ParallelFor(x.rows(), 32768 / (n + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < n; ++j) out[i * n + j] = sum += x.data()[i * n + j];
    }
  });
  return Value(std::move(result));
}

}  // namespace

/// rowcumsum(X): the sums of the cells of a row so far.
///
/// Shapes:  X is m x n, the result, too.
/// Order:   from left to right, from +0.0.
/// Cost:    reads and writes X once.
extern constexpr Operator kRowCumsum = {.name = "rowcumsum",
                                        .form = CallForm::kPositional,
                                        .parameters = "X",
                                        .min_inputs = 1,
                                        .max_inputs = 1,
                                        .infer = InferRowCumsum,
                                        .row_rule = RowWise,
                                        .input_use = AllByRows,
                                        .run = RunRowCumsum,
                                        .adjoints = "t(rev(cumsum(rev(t(dy)))))"};

}  // namespace heddle::ops
