// SPDX-License-Identifier: Apache-2.0
#include "ops/reorganize/moved_rows.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ops/base/arguments.h"
#include "ops/base/columns.h"
#include "ops/base/row_rules.h"
#include "ops/base/whole_number.h"
#include "ops/cells/move_cells.h"
#include "ops/cells/storage.h"
#include "ops/frame/row_pieces.h"

namespace heddle::ops {
namespace {

// Of the rows that this rank has, from row `own` of all on, those in [begin, end).
Result<Value> OwnOf(const Value& x, int64_t own, int64_t begin, int64_t end) {
  const int64_t count = x.shape().rows;
  const int64_t first = std::clamp<int64_t>(begin - own, 0, count);
  return SliceRows(x, first, std::clamp<int64_t>(end - own, first, count));
}

// A rank's rows of the result are columns of X, which it gets from all ranks one below the other.
Status RunTranspose(const StageCall& call, std::span<Value> outputs) {
  if (call.stage == 1) {
    HEDDLE_ASSIGN_OR_RETURN(const Value columns, JoinRows(call.Parts(0)));
    HEDDLE_ASSIGN_OR_RETURN(Matrix rows, Transpose(columns.matrix()));
    outputs[0] = Value(std::move(rows));
    return OkStatus();
  }
  const Matrix& x = call.inputs[0]->matrix();
  for (int32_t rank = 0; rank < call.ranks(); ++rank) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix columns,
                            SliceColumns(x, call.result_rows.Begin(rank), call.result_rows.End(rank)));
    outputs[static_cast<size_t>(rank)] = Value(std::move(columns));
  }
  return OkStatus();
}

// Row i of the result is row `top` + i of X, counted round. A rank's rows come from one range of rows of X,
// and from a second one where the range goes beyond the last row.
Status RunRoll(const StageCall& call, std::span<Value> outputs) {
  const auto ranks = static_cast<size_t>(call.ranks());
  if (call.stage == 1) {
    std::vector<const Value*> pieces;
    for (const size_t range : {0, 1})
      for (const Value* piece : call.Parts(range)) pieces.push_back(piece);
    HEDDLE_ASSIGN_OR_RETURN(outputs[0], JoinRows(pieces));
    return OkStatus();
  }
  const int64_t rows = call.rows.Length(), own = call.rows.Begin(call.rank);
  HEDDLE_ASSIGN_OR_RETURN(
      const int64_t shift,
      RequireWholeNumber(call.inputs[1]->scalar(), "roll", "the shift", StatusCode::kFailedPrecondition));
  const int64_t top = rows == 0 ? 0 : (rows - shift % rows) % rows;
  for (size_t rank = 0; rank < ranks; ++rank) {
    const int64_t begin = call.result_rows.Begin(static_cast<int32_t>(rank)) + top;
    const int64_t end = call.result_rows.End(static_cast<int32_t>(rank)) + top;
    HEDDLE_ASSIGN_OR_RETURN(outputs[rank],
                            OwnOf(*call.inputs[0], own, std::min(begin, rows), std::min(end, rows)));
    HEDDLE_ASSIGN_OR_RETURN(outputs[ranks + rank], OwnOf(*call.inputs[0], own, std::max(begin, rows) - rows,
                                                         std::max(end, rows) - rows));
  }
  return OkStatus();
}

// Cells keep their order, so a rank's rows of the result are a range of cells of X.
Status RunReshape(const StageCall& call, std::span<Value> outputs) {
  const int64_t columns = call.node.info.shape.columns;
  if (call.stage == 1) {
    HEDDLE_ASSIGN_OR_RETURN(const Value cells, JoinRows(call.Parts(0)));
    const int64_t rows = call.result_rows.End(call.rank) - call.result_rows.Begin(call.rank);
    outputs[0] = Value(cells.matrix().Reshaped(rows, columns));
    return OkStatus();
  }
  HEDDLE_ASSIGN_OR_RETURN(const Matrix x, AsDense(call.inputs[0]->matrix()));
  const Value column(x.Reshaped(x.cells(), 1));
  const int64_t own = call.rows.Begin(call.rank) * x.columns();
  for (int32_t rank = 0; rank < call.ranks(); ++rank) {
    HEDDLE_ASSIGN_OR_RETURN(
        outputs[static_cast<size_t>(rank)],
        OwnOf(column, own, call.result_rows.Begin(rank) * columns, call.result_rows.End(rank) * columns));
  }
  return OkStatus();
}

bool CanReshape(const Node& node, std::span<const ValueInfo> inputs) {
  return node.info.IsSized() && inputs[0].IsMatrix() && inputs[0].IsSized() &&
         inputs[0].format == Format::kDense && node.info.format == Format::kDense &&
         inputs[0].shape.Cells() == node.info.shape.Cells() && BooleanAttribute(node, "byrow", true);
}

double BytesOfX(const Node&, std::span<const ValueInfo> inputs, const RankGrid&) {
  return static_cast<double>(KnownBytes(inputs[0]));
}

constexpr Reach kOneRange[] = {Reach::kParts}, kTwoRanges[] = {Reach::kParts, Reach::kParts};
constexpr Stage kOneRangeStages[] = {{.outputs = kOneRange, .reads_inputs = true}, {}},
                kTwoRangesStages[] = {{.outputs = kTwoRanges, .reads_inputs = true}, {}};

constexpr StagedForm Moved(std::span<const Stage> stages,
                           bool (*applies)(const Node& node, std::span<const ValueInfo> inputs),
                           Status (*run)(const StageCall& call, std::span<Value> outputs),
                           const StagedForm* other) {
  return {.stages = stages,
          .result = StagedResult::kRows,
          .other = other,
          .applies = applies,
          .moved_bytes = BytesOfX,
          .run = run};
}

}  // namespace

// What each rank has, turned: no cell leaves its rank. First of columns, then of rows.
constexpr StagedForm kTurnedColumns = {.stages = kOneStage,
                                       .result = StagedResult::kTurned,
                                       .axis = Axis::kColumns,
                                       .applies = IsSized,
                                       .input_use = FirstByRows,
                                       .run = RunColumns};
constexpr StagedForm kTurnedRows = {.stages = kOneStage,
                                    .result = StagedResult::kTurned,
                                    .other = &kTurnedColumns,
                                    .applies = IsSized,
                                    .run = RunColumns};
constexpr StagedForm kTransposeStaged = Moved(kOneRangeStages, IsSized, RunTranspose, &kTurnedRows);
constexpr StagedForm kRollColumns = ByColumns(FirstByRows, IsSized);
constexpr StagedForm kRollStaged = Moved(kTwoRangesStages, IsSized, RunRoll, &kRollColumns);
constexpr StagedForm kReshapeStaged = Moved(kOneRangeStages, CanReshape, RunReshape, nullptr);

}  // namespace heddle::ops
