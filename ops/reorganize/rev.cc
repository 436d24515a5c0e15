// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <vector>

#include "ops/base/arguments.h"
#include "ops/base/columns.h"
#include "ops/base/device_forms.h"
#include "ops/cells/move_cells.h"
#include "ops/frame/row_pieces.h"

namespace heddle::ops {
namespace {

Result<ValueInfo> InferRev(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "argument 1"));
  return ValueInfo::OfMatrix(context.inputs[0].shape, context.inputs[0].format);
}

Result<Value> Reversed(const Matrix& x) {
  std::vector<int64_t> rows(static_cast<size_t>(x.rows()));
  std::iota(rows.rbegin(), rows.rend(), 0);
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, GatherRows(x, rows));
  return Value(std::move(result));
}

Result<Value> RunRev(const KernelCall& call) { return Reversed(call.inputs[0]->matrix()); }

// Every rank sends each other one the rows that are its own when they are counted from the end.
Status RunRevStage(const StageCall& call, std::span<Value> outputs) {
  if (call.stage == 1) {
    HEDDLE_ASSIGN_OR_RETURN(const Value rows, JoinRows(call.Parts(0)));
    HEDDLE_ASSIGN_OR_RETURN(outputs[0], Reversed(rows.matrix()));
    return OkStatus();
  }
  const int64_t all = call.rows.Length(), own = call.rows.Begin(call.rank);
  const int64_t count = call.rows.End(call.rank) - own;
  for (int32_t rank = 0; rank < call.ranks(); ++rank) {
    const int64_t begin = std::clamp<int64_t>(all - call.result_rows.End(rank) - own, 0, count);
    const int64_t end = std::clamp<int64_t>(all - call.result_rows.Begin(rank) - own, begin, count);
    HEDDLE_ASSIGN_OR_RETURN(outputs[static_cast<size_t>(rank)], SliceRows(*call.inputs[0], begin, end));
  }
  return OkStatus();
}

constexpr Reach kToEach[] = {Reach::kParts};
constexpr Stage kRevStages[] = {{.outputs = kToEach, .reads_inputs = true}, {}};
double BytesOfFirst(const Node&, std::span<const ValueInfo> inputs, const RankGrid&) {
  return static_cast<double>(KnownBytes(inputs[0]));
}
constexpr StagedForm kRevColumns = ByColumns(FirstByRows);
constexpr StagedForm kRevStaged = {.stages = kRevStages,
                                   .result = StagedResult::kRows,
                                   .other = &kRevColumns,
                                   .moved_bytes = BytesOfFirst,
                                   .run = RunRevStage};

}  // namespace

/// rev(X): the rows in reverse order.
///
/// Shapes:  X m x n, the result m x n, in X's format. Exact.
/// Rows:    in stages: every rank sends each other one its rows; or by columns.
/// Cost:    reads and writes X once.
extern constexpr Operator kRev = {.name = "rev",
                                  .form = CallForm::kPositional,
                                  .parameters = "X",
                                  .min_inputs = 1,
                                  .max_inputs = 1,
                                  .infer = InferRev,
                                  .input_use = AllByRows,
                                  .staged = &kRevStaged,
                                  .run = RunRev,
                                  .run_on_device = ReverseOnDevice,
                                  .takes_singles = TakesAnySingles,
                                  .adjoints = "rev(dy)"};

}  // namespace heddle::ops
