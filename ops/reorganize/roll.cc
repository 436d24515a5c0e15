// SPDX-License-Identifier: Apache-2.0
#include <numeric>
#include <vector>

#include "ops/base/arguments.h"
#include "ops/base/device_forms.h"
#include "ops/base/stages.h"
#include "ops/base/whole_number.h"
#include "ops/catalog.h"
#include "ops/cells/move_cells.h"
#include "ops/reorganize/moved_rows.h"

namespace heddle::ops {
namespace {

Result<ValueInfo> InferRoll(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "argument 1"));
  HEDDLE_RETURN_IF_ERROR(RequireScalar(context, 1, "the shift"));
  if (const Scalar* shift = KnownScalar(context, 1))
    HEDDLE_RETURN_IF_ERROR(
        RequireWholeNumber(*shift, "roll", "the shift", StatusCode::kInvalidArgument).status());
  return ValueInfo::OfMatrix(context.inputs[0].shape, context.inputs[0].format);
}

Result<Value> RunRoll(const KernelCall& call) {
  const Matrix& x = call.inputs[0]->matrix();
  HEDDLE_ASSIGN_OR_RETURN(
      const int64_t shift,
      RequireWholeNumber(call.inputs[1]->scalar(), "roll", "the shift", StatusCode::kFailedPrecondition));
  const int64_t m = x.rows();
  if (m == 0 || shift % m == 0) return Value(x);
  // Row `first` becomes the top one.
  const int64_t first = (m - shift % m) % m;
  std::vector<int64_t> rows(static_cast<size_t>(m));
  std::iota(rows.begin(), rows.end() - first, first);
  std::iota(rows.end() - first, rows.end(), 0);
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, GatherRows(x, rows));
  return Value(std::move(result));
}

}  // namespace

/// roll(X, shift): the rows of X moved down by `shift`, truncated to a whole number; those that leave at the
/// bottom come in again at the top. Up where it is negative.
///
/// Shapes:  X m x n, the result m x n. Format: X's. Exact.
/// Cost:    copies X once.
extern constexpr Operator kRoll = {.name = "roll",
                                   .form = CallForm::kPositional,
                                   .parameters = "X shift",
                                   .min_inputs = 2,
                                   .max_inputs = 2,
                                   .infer = InferRoll,
                                   .input_use = FirstByRows,
                                   .staged = &kRollStaged,
                                   .run = RunRoll,
                                   .run_on_device = RollOnDevice,
                                   .may_fail = true,
                                   .adjoints = "roll(dy, -shift); 0"};

}  // namespace heddle::ops
