// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "core/values/sizes.h"
#include "ops/base/arguments.h"
#include "ops/base/parallel.h"
#include "ops/base/row_rules.h"
#include "ops/base/stages.h"
#include "ops/cells/move_cells.h"
#include "ops/frame/row_pieces.h"

namespace heddle::ops {
namespace {

Status CheckGroups(Shape x, int64_t groups, StatusCode code) {
  if (groups == kUnknown || x.columns == kUnknown || (groups > 0 && x.columns % groups == 0))
    return OkStatus();
  return Status(code, fmt::format("regroup: {} columns are no {} groups", x.columns, groups));
}

Shape Regrouped(Shape x, int64_t groups) {
  const bool known = x.IsKnown() && groups != kUnknown && groups > 0;
  return {groups, known ? SaturatingProduct(x.rows, x.columns / groups) : kUnknown};
}

Result<ValueInfo> InferRegroup(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "argument 1"));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t groups, InferSize(context, 1, "groups", kUnknown));
  HEDDLE_RETURN_IF_ERROR(CheckGroups(context.inputs[0].shape, groups, StatusCode::kInvalidArgument));
  return ValueInfo::OfMatrix(Regrouped(context.inputs[0].shape, groups));
}

template <typename Cell>
Result<Matrix> Regroup(const Matrix& x, int64_t groups) {
  const int64_t m = x.rows(), width = x.columns() / std::max<int64_t>(groups, 1);
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(groups, m * width, x.element_type()));
  ParallelFor(groups, RowGrain(m * width), [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group)
      for (int64_t i = 0; i < m; ++i)
        std::copy_n(x.data<Cell>() + i * x.columns() + group * width, width,
                    result.mutable_data<Cell>() + (group * m + i) * width);
  });
  return result;
}

Result<Value> RegroupedCells(const Matrix& x, int64_t groups) {
  const bool singles = x.element_type() == ElementType::kFloat32;
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, singles ? Regroup<float>(x, groups) : Regroup<double>(x, groups));
  return Value(std::move(result));
}

Result<Value> RunRegroup(const KernelCall& call) {
  const Matrix& x = call.inputs[0]->matrix();
  HEDDLE_ASSIGN_OR_RETURN(const int64_t groups, GivenSize(call, 1, "groups", 1));
  HEDDLE_RETURN_IF_ERROR(CheckGroups(x.shape(), groups, StatusCode::kFailedPrecondition));
  return RegroupedCells(x, groups);
}

// A rank's rows of the result are some groups of all rows of X.
Status RunStage(const StageCall& call, std::span<Value> outputs) {
  const int64_t groups = call.node.info.shape.rows;
  if (call.stage == 1) {
    HEDDLE_ASSIGN_OR_RETURN(const Value rows, JoinRows(call.Parts(0)));
    HEDDLE_ASSIGN_OR_RETURN(outputs[0], RegroupedCells(rows.matrix(), call.result_rows.End(call.rank) -
                                                                          call.result_rows.Begin(call.rank)));
    return OkStatus();
  }
  const Matrix& x = call.inputs[0]->matrix();
  const int64_t width = x.columns() / std::max<int64_t>(groups, 1);
  for (int32_t rank = 0; rank < call.ranks(); ++rank) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix columns, SliceColumns(x, call.result_rows.Begin(rank) * width,
                                                         call.result_rows.End(rank) * width));
    outputs[static_cast<size_t>(rank)] = Value(std::move(columns));
  }
  return OkStatus();
}

double BytesOfX(const Node&, std::span<const ValueInfo> inputs, const RankGrid&) {
  return static_cast<double>(KnownBytes(inputs[0]));
}

constexpr Reach kGroups[] = {Reach::kParts};
constexpr Stage kStages[] = {{.outputs = kGroups, .reads_inputs = true}, {}};
constexpr StagedForm kStaged = {.stages = kStages,
                                .result = StagedResult::kRows,
                                .applies = IsSized,
                                .moved_bytes = BytesOfX,
                                .run = RunStage};

}  // namespace

/// regroup(X, groups): X has its columns in so many groups of w each; row g of the result has group g of all
/// rows of X side by side. regroup(Y, nrow(X)) of the result is X again.
///
/// Shapes:  X is m x groups*w, the result groups x m*w. Format: dense.
/// Errors:  columns that are no such groups.
/// Cost:    reads and writes X once.
/// Rows:    on several ranks in stages, each cell sent once.
extern constexpr Operator kRegroup = {.name = "regroup",
                                      .parameters = "X groups",
                                      .min_inputs = 2,
                                      .max_inputs = 2,
                                      .infer = InferRegroup,
                                      .input_use = FirstByRows,
                                      .staged = &kStaged,
                                      .run = RunRegroup,
                                      .takes_singles = TakesAnySingles,
                                      .storages = Storages::kDense};

}  // namespace heddle::ops
