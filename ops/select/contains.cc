// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>

#include "ops/base/arguments.h"
#include "ops/base/stages.h"
#include "ops/cells/storage.h"
#include "ops/compressed/occurring_cells.h"

namespace heddle::ops {
namespace {

enum Input { kTarget, kPattern };

Status CheckPattern(const Shape& target, const Shape& pattern, StatusCode code) {
  const bool is_row = pattern.rows == kUnknown || pattern.rows == 1;
  const bool fits =
      pattern.columns == kUnknown || target.columns == kUnknown || pattern.columns == target.columns;
  if (is_row && fits) return OkStatus();
  return Status(code, fmt::format("contains: the pattern must be a number or a row of the {} matrix, not {}",
                                  target, pattern));
}

Result<ValueInfo> InferContains(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, kTarget, "target"));
  const ValueInfo& pattern = context.inputs[kPattern];
  if (pattern.IsMatrix()) {
    HEDDLE_RETURN_IF_ERROR(
        CheckPattern(context.inputs[kTarget].shape, pattern.shape, StatusCode::kInvalidArgument));
  } else {
    HEDDLE_RETURN_IF_ERROR(RequireScalar(context, kPattern, "pattern"));
    if (pattern.value_type == ValueType::kString)
      return InvalidArgument("contains: pattern is a string, but the cells of a matrix are numbers");
  }
  return ValueInfo::OfScalar(ValueType::kBoolean);
}

bool IsSame(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

Result<Value> RunContains(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const Matrix x, AsDense(call.inputs[kTarget]->matrix()));
  const Value& pattern = *call.inputs[kPattern];
  const double *const begin = x.data(), *const end = begin + x.cells();
  if (pattern.IsScalar()) {
    const double wanted = pattern.scalar().AsDouble();
    return Value(Scalar(std::any_of(begin, end, [&](double cell) { return IsSame(cell, wanted); })));
  }
  HEDDLE_RETURN_IF_ERROR(CheckPattern(x.shape(), pattern.matrix().shape(), StatusCode::kFailedPrecondition));
  HEDDLE_ASSIGN_OR_RETURN(const Matrix row, AsDense(pattern.matrix()));
  const double* const wanted = row.data();
  for (const double* at = begin; at < end; at += x.columns())
    if (std::equal(at, at + x.columns(), wanted, IsSame)) return Value(Scalar(true));
  return Value(Scalar(false));
}

// Of a number it matters only which cells there are.
Result<std::optional<Value>> RunContainsOfCodes(const KernelCall& call) {
  if (!call.inputs[kPattern]->IsScalar()) return std::optional<Value>();
  return RunOnOccurringCells(call);
}

// Whether it is in the rows of any rank.
Status RunContainsStage(const StageCall& call, std::span<Value> outputs) {
  if (call.stage == 0) {
    HEDDLE_ASSIGN_OR_RETURN(const Value found, RunContains(call.WholeCall()));
    HEDDLE_ASSIGN_OR_RETURN(Matrix cell, FilledMatrix(1, 1, found.scalar().AsBoolean() ? 1 : 0));
    outputs[0] = Value(std::move(cell));
    return OkStatus();
  }
  const Matrix& found = call.Received(0).matrix();
  outputs[0] =
      Value(Scalar(std::find(found.data(), found.data() + found.rows(), 1.0) != found.data() + found.rows()));
  return OkStatus();
}

constexpr Reach kFound[] = {Reach::kAll};
constexpr Stage kStages[] = {{.outputs = kFound, .reads_inputs = true}, {}};
constexpr StagedForm kStaged = {.stages = kStages, .result = StagedResult::kEach, .run = RunContainsStage};

}  // namespace

/// contains(target=X, pattern=p): TRUE if a cell of X equals the number p, or a row of X the row p. NaN
/// equals NaN here.
///
/// Shapes:  X is m x n, p a number or 1 x n; a boolean.
/// Cost:    reads X once, at most.
extern constexpr Operator kContains = {.name = "contains",
                                       .form = CallForm::kNamed,
                                       .parameters = "target pattern",
                                       .min_inputs = 2,
                                       .max_inputs = 2,
                                       .infer = InferContains,
                                       .input_use = FirstByRows,
                                       .staged = &kStaged,
                                       .run = RunContains,
                                       .run_compressed = RunContainsOfCodes};

}  // namespace heddle::ops
