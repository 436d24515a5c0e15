// SPDX-License-Identifier: Apache-2.0
#include "ops/index/index_stages.h"

#include <algorithm>
#include <utility>

#include "ops/base/arguments.h"
#include "ops/base/columns.h"
#include "ops/cells/column_pieces.h"
#include "ops/cells/frame_columns.h"
#include "ops/cells/move_cells.h"
#include "ops/frame/arrange.h"
#include "ops/frame/row_pieces.h"
#include "ops/index/ranges.h"

namespace heddle::ops {
namespace {

struct Ranges {
  Range rows, columns;
};
Ranges RangesOf(const StageCall& call) {
  const auto scalar = [&](size_t i) {
    return i < call.inputs.size() && call.inputs[i] != nullptr ? &call.inputs[i]->scalar() : nullptr;
  };
  return {GivenRange(scalar(1), scalar(2)), GivenRange(scalar(3), scalar(4))};
}

// The rows within bounds that this rank has, and the number of the first of them in the result.
struct OwnRows {
  Value rows;
  int64_t first = 0;
};
Result<OwnRows> OwnRowsWithin(const StageCall& call) {
  const Value& x = *call.inputs[0];
  const auto [rows, columns] = RangesOf(call);
  Shape shape = call.input_infos[0].shape;
  if (!shape.IsKnown()) shape = {call.rows.Length(), x.shape().columns};
  HEDDLE_RETURN_IF_ERROR(
      CheckRanges(rows, columns, shape, StatusCode::kFailedPrecondition, x.IsFrame() ? "frame" : "matrix"));
  const int64_t own = call.rows.Begin(call.rank), count = x.shape().rows;
  const int64_t begin = std::clamp<int64_t>(rows.Begin() - own, 0, count);
  const int64_t end = std::clamp<int64_t>(rows.End(shape.rows) - own, begin, count);
  HEDDLE_ASSIGN_OR_RETURN(Value within, SliceRows(x, begin, end));
  if (within.IsFrame()) {
    if (!columns.all) within = Value(ColumnsOf(within.frame(), columns.Begin(), columns.End(shape.columns)));
  } else {
    HEDDLE_ASSIGN_OR_RETURN(Matrix cells,
                            SliceColumns(within.matrix(), columns.Begin(), columns.End(shape.columns)));
    within = Value(std::move(cells));
  }
  return OwnRows{std::move(within), own + begin - rows.Begin()};
}

// Few rows, which all ranks get.
Status RunFewRows(const StageCall& call, std::span<Value> outputs) {
  if (call.stage == 1) {
    outputs[0] = call.Received(0);
    return OkStatus();
  }
  HEDDLE_ASSIGN_OR_RETURN(OwnRows own, OwnRowsWithin(call));
  outputs[0] = std::move(own.rows);
  return OkStatus();
}

// Many rows: each rank gets its own of the result.
Status RunManyRows(const StageCall& call, std::span<Value> outputs) {
  if (call.stage == 1) {
    HEDDLE_ASSIGN_OR_RETURN(outputs[0], JoinRows(call.Parts(0)));
    return OkStatus();
  }
  HEDDLE_ASSIGN_OR_RETURN(const OwnRows own, OwnRowsWithin(call));
  const int64_t count = own.rows.shape().rows;
  for (int32_t rank = 0; rank < call.ranks(); ++rank) {
    const int64_t begin = std::clamp<int64_t>(call.result_rows.Begin(rank) - own.first, 0, count);
    const int64_t end = std::clamp<int64_t>(call.result_rows.End(rank) - own.first, begin, count);
    HEDDLE_ASSIGN_OR_RETURN(outputs[static_cast<size_t>(rank)], SliceRows(own.rows, begin, end));
  }
  return OkStatus();
}

// As many rows as only the run tells: they stay where they are.
Status RunOwnRows(const StageCall& call, std::span<Value> outputs) {
  HEDDLE_ASSIGN_OR_RETURN(OwnRows own, OwnRowsWithin(call));
  outputs[0] = std::move(own.rows);
  return OkStatus();
}

constexpr int64_t kMostBytesToAll = int64_t{1} << 20;
bool IsRange(const Node& node, bool is_sized) {
  return HasRowBounds(node, 1) && node.info.IsSized() == is_sized;
}
bool HasFewRows(const Node& node, std::span<const ValueInfo>) {
  return IsRange(node, true) && KnownBytes(node.info) <= kMostBytesToAll;
}
bool HasKnownRows(const Node& node, std::span<const ValueInfo>) { return IsRange(node, true); }
bool HasUnknownRows(const Node& node, std::span<const ValueInfo>) { return IsRange(node, false); }
double BytesOfResult(const Node& node, std::span<const ValueInfo>, const RankGrid&) {
  return static_cast<double>(KnownBytes(node.info));
}

constexpr Reach kToAll[] = {Reach::kAll}, kToEach[] = {Reach::kParts};
constexpr Stage kFewStages[] = {{.outputs = kToAll, .reads_inputs = true}, {}},
                kManyStages[] = {{.outputs = kToEach, .reads_inputs = true}, {}},
                kOwnStages[] = {{.reads_inputs = true}};
bool HasAllColumns(const Node& node, std::span<const ValueInfo> inputs) {
  return inputs[0].IsMatrix() && !IsGiven(node, 3) && !IsGiven(node, 4);
}
// A range of columns, whose bounds only the run may tell.
bool HasColumnRange(const Node& node, std::span<const ValueInfo> inputs) {
  return inputs[0].IsMatrix() && node.info.IsSized() && (IsGiven(node, 3) || IsGiven(node, 4));
}

// Each rank gets its own columns of the result.
Status RunManyColumns(const StageCall& call, std::span<Value> outputs) {
  if (call.stage == 1) {
    HEDDLE_ASSIGN_OR_RETURN(outputs[0], JoinColumnsAs(call.Parts(0), call.node.info));
    return OkStatus();
  }
  const Value& x = *call.inputs[0];
  const Shape& shape = call.input_infos[0].shape;
  const Ranges ranges = RangesOf(call);
  HEDDLE_RETURN_IF_ERROR(CheckRanges(ranges.rows, ranges.columns, shape, StatusCode::kFailedPrecondition));
  HEDDLE_ASSIGN_OR_RETURN(const Value within, SliceRows(x, ranges.rows.Begin(), ranges.rows.End(shape.rows)));
  // Where the result's first column is among those of this rank.
  const int64_t first = ranges.columns.Begin() - call.rows.Begin(call.rank), count = x.shape().columns;
  for (int32_t rank = 0; rank < call.ranks(); ++rank) {
    const int64_t begin = std::clamp<int64_t>(first + call.result_rows.Begin(rank), 0, count);
    const int64_t end = std::clamp<int64_t>(first + call.result_rows.End(rank), begin, count);
    HEDDLE_ASSIGN_OR_RETURN(outputs[static_cast<size_t>(rank)], ColumnsOfValue(within, begin, end));
  }
  return OkStatus();
}

constexpr StagedForm kManyColumnsForm = {.stages = kManyStages,
                                         .result = StagedResult::kColumns,
                                         .axis = Axis::kColumns,
                                         .applies = HasColumnRange,
                                         .input_use = FirstByRows,
                                         .moved_bytes = BytesOfResult,
                                         .run = RunManyColumns};
constexpr StagedForm kIndexColumns = [] {
  StagedForm form = ByColumns(FirstByRows, HasAllColumns);
  form.other = &kManyColumnsForm;
  return form;
}();
constexpr StagedForm kOwnRowsForm = {.stages = kOwnStages,
                                     .result = StagedResult::kUneven,
                                     .other = &kIndexColumns,
                                     .applies = HasUnknownRows,
                                     .run = RunOwnRows};
constexpr StagedForm kManyRowsForm = {.stages = kManyStages,
                                      .result = StagedResult::kRows,
                                      .other = &kOwnRowsForm,
                                      .applies = HasKnownRows,
                                      .moved_bytes = BytesOfResult,
                                      .run = RunManyRows};

}  // namespace

bool HasRowBounds(const Node& node, int first) { return IsGiven(node, first) || IsGiven(node, first + 1); }

constexpr StagedForm kIndexStages = {.stages = kFewStages,
                                     .result = StagedResult::kEach,
                                     .other = &kManyRowsForm,
                                     .applies = HasFewRows,
                                     .run = RunFewRows};

}  // namespace heddle::ops
