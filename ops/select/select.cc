// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "core/values/panels.h"
#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/base/columns.h"
#include "ops/base/parallel.h"
#include "ops/base/row_rules.h"
#include "ops/catalog.h"
#include "ops/cells/move_cells.h"
#include "ops/cells/storage.h"
#include "ops/compressed/cells_of_tuples.h"
#include "ops/elementwise/elementwise_sparse.h"
#include "ops/frame/arrange.h"
#include "ops/frame/remove_empty.h"
#include "ops/select/select_operators.h"
#include "ops/simd/cellwise/elementwise_codes.h"

namespace heddle::ops {
namespace {

// ---- replace(target=X, pattern=p, replacement=r): X with every cell equal to p replaced by r, m x n; a NaN
//      pattern matches every NaN, 0 matches -0.0. Inputs: target, pattern, replacement (scalars). Format: X's
//      (a pattern of 0 fills a CSR matrix). Exact. Rows: row-wise. Cost: reads and writes X once.

Result<ValueInfo> InferReplace(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "target"));
  HEDDLE_RETURN_IF_ERROR(RequireScalar(context, 1, "pattern"));
  HEDDLE_RETURN_IF_ERROR(RequireScalar(context, 2, "replacement"));
  for (size_t i : {1, 2})
    if (context.inputs[i].value_type == ValueType::kString)
      return InvalidArgument("replace: {} is a string, but the cells of a matrix are numbers",
                             i == 1 ? "pattern" : "replacement");
  return ValueInfo::OfMatrix(context.inputs[0].shape, context.inputs[0].format);
}

bool ReplaceVanishes(const CellOperands& operands) {
  return operands.absent(0) && !IsZero(operands.operand(1));
}

void ReplaceCells(const double* in, int64_t count, double pattern, double replacement, double* out) {
  if (std::isnan(pattern)) {
    for (int64_t k = 0; k < count; ++k) out[k] = in[k] != in[k] ? replacement : in[k];
  } else {
    for (int64_t k = 0; k < count; ++k) out[k] = in[k] == pattern ? replacement : in[k];
  }
}

Result<Matrix> ReplaceDense(const Matrix& x, double pattern, double replacement) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(x.rows(), x.columns()));
  double* out = result.mutable_data();
  ParallelFor(x.cells(), 32768, [&](int64_t begin, int64_t end) {
    ReplaceCells(x.data() + begin, end - begin, pattern, replacement, out + begin);
  });
  return result;
}

Result<Value> RunReplace(const KernelCall& call) {
  const Matrix& x = call.inputs[0]->matrix();
  const double pattern = NumberOr(call, 1, 0);
  const double replacement = NumberOr(call, 2, 0);
  Matrix result;
  if (!x.IsSparse()) {
    HEDDLE_ASSIGN_OR_RETURN(result, ReplaceDense(x, pattern, replacement));
    return Value(std::move(result));
  }
  if (pattern == 0 && replacement != 0) {  // Every cell has an entry, but for what else is there.
    HEDDLE_ASSIGN_OR_RETURN(const Matrix dense, AsDense(x));
    HEDDLE_ASSIGN_OR_RETURN(const Matrix replaced, ReplaceDense(dense, pattern, replacement));
    HEDDLE_ASSIGN_OR_RETURN(result, AsSparse(replaced));
    return Value(std::move(result));
  }
  HEDDLE_ASSIGN_OR_RETURN(result, SamePattern(x));
  if (x.rows() == 0) return Value(std::move(result));
  const double* values = x.values() + x.row_offsets()[0];
  ParallelFor(x.stored(), 32768, [&](int64_t begin, int64_t end) {
    ReplaceCells(values + begin, end - begin, pattern, replacement, result.mutable_values() + begin);
  });
  HEDDLE_ASSIGN_OR_RETURN(result, DropZerosOfOwn(std::move(result)));
  return Value(std::move(result));
}

}  // namespace

namespace {

// Cells that are replaced do not count any more; NaN is replaced where cells are NaN.
void DifferentiateReplace(AdjointCall& call) {
  const NodeId replaced = call.Formula("(target == pattern) | (is.nan(target) & is.nan(pattern))");
  if (call.IsWanted(0)) call.Give(0, call.Formula("dy * (1 - R)", {{"R", replaced}}));
  if (call.IsWanted(2)) call.Give(2, call.Formula("sum(dy * R)", {{"R", replaced}}));
}

}  // namespace

constexpr StagedForm kReplaceColumns = ByColumns(
    FirstByRows, [](const Node&, std::span<const ValueInfo> inputs) { return inputs[0].IsMatrix(); });

std::span<const Operator> SelectOperators() {
  static const Operator kOperators[] = {
      kTableOperator,
      kTableBackwardOperator,
      kRemoveEmptyOperator,
      kOrderOperator,
      {.name = "replace",
       .form = CallForm::kNamed,
       .parameters = "target pattern replacement",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = InferReplace,
       .row_rule = RowWise,
       .input_use = FirstByRows,
       .staged = &kReplaceColumns,
       .run = RunReplace,
       .run_compressed = RunCellsOfTuples,
       .role = Role::kReplace,
       .fusion =
           {.use = RowUse::kCells, .cell = true, .row = true, .outer = true, .work = 0.8, .literal_input = 1},
       .vanishes = ReplaceVanishes,
       .adjoints = "*; 0; *",
       .differentiate = DifferentiateReplace},
  };
  return kOperators;
}

}  // namespace heddle::ops
