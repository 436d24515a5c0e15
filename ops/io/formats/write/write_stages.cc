// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/write_stages.h"

#include <algorithm>
#include <vector>

#include "ops/base/held_bytes.h"
#include "ops/io/formats/share_rows.h"
#include "ops/io/formats/write/joint_write.h"
#include "ops/panels/view_panels.h"

namespace heddle::ops {

Result<WriteOptions> WriteOptionsOf(const Node& node, const Scalar* format) {
  if (format == nullptr) return ResolveWriteOptions(node);
  Node known = node;
  known.SetAttribute("format", *format);
  return ResolveWriteOptions(known);
}

Result<WriteOptions> WriteOptionsOf(const Node& node, std::span<const Value* const> inputs,
                                    const KernelContext& context) {
  const Scalar* const format = inputs.size() > 2 && inputs[2] != nullptr ? &inputs[2]->scalar() : nullptr;
  Result<WriteOptions> found = WriteOptionsOf(node, format);
  if (!found.ok() && found.status().code() == StatusCode::kInvalidArgument)
    return FailedPrecondition("{}", found.status().message());
  if (found.ok()) found->cancelled = context.cancelled;
  return found;
}

namespace {

// Every rank writes its rows of a value that is split. The stages are the steps of JointWrite. What all have
// told of the rows, and the codings of a matrix by column groups, go on from stage to stage.
constexpr Reach kTold[] = {Reach::kAll};
constexpr Reach kToldAndCells[] = {Reach::kAll, Reach::kParts};
constexpr Reach kToldAndCodings[] = {Reach::kHere, Reach::kAll};
constexpr Reach kToldAndRows[] = {Reach::kHere, Reach::kHere, Reach::kParts};
constexpr Reach kToldAndGiven[] = {Reach::kHere, Reach::kHere, Reach::kHere, Reach::kAll};
constexpr Stage kWriteStages[] = {{.outputs = kTold, .reads_inputs = true},
                                  {.outputs = kToldAndRows, .reads_inputs = true},
                                  {.outputs = kToldAndGiven, .reads_inputs = true},
                                  {.reads_inputs = true}};
constexpr Stage kGroupStages[] = {{.outputs = kToldAndCells, .reads_inputs = true},
                                  {.outputs = kToldAndCodings, .reads_inputs = true},
                                  {.outputs = kToldAndRows, .reads_inputs = true},
                                  {.outputs = kToldAndGiven, .reads_inputs = true},
                                  {.reads_inputs = true}};

bool IsByGroups(const Node& node) {
  const Result<WriteOptions> options = WriteOptionsOf(node, nullptr);
  return options.ok() && options->by_groups;
}
bool WritesRows(const Node& node, std::span<const ValueInfo> inputs) {
  return inputs[0].IsTabular() && !IsByGroups(node);
}
bool WritesGroups(const Node& node, std::span<const ValueInfo> inputs) {
  return inputs[0].IsTabular() && IsByGroups(node);
}

// Bytes for one rank, or for all of them: the ranks' bytes are rows of a frame of one column.
Result<Value> FrameOf(std::span<const std::string_view> texts) {
  Schema schema;
  schema.types = {ColumnType::kString};
  HEDDLE_ASSIGN_OR_RETURN(Column column, Column::OfTexts(texts));
  return Value(Frame(std::make_shared<const Schema>(std::move(schema)), {std::move(column)}));
}

// The codings of all files, which rank 0 has chosen.
Result<Value> CodingsOf(const StageCall& call, const JointWrite& write,
                        std::span<const std::string> totals) {
  std::string chosen;
  if (call.rank == 0) {
    std::vector<Column> columns;
    std::vector<std::string_view> cells;
    for (const Value* const of_rank : call.Parts(1)) {
      columns.push_back(of_rank->frame().column(0));
      cells.push_back(columns.back().TextAt(0));
    }
    HEDDLE_ASSIGN_OR_RETURN(chosen, write.ChooseCodings(totals, cells));
  }
  const std::string_view text = chosen;
  return FrameOf({&text, 1});
}

// Rows of a compressed matrix are decoded a few at a time.
Value RowsToWrite(const StageCall& call) {
  const Value& rows = *call.inputs[0];
  if (rows.IsPanels()) return Value(DecodedPanels(rows.panels()));
  if (rows.IsMatrix() && rows.matrix().IsCompressed())
    return Value(DecodedPanels(rows.matrix(), call.input_infos[0].format));
  return rows;
}

Status RunWriteStage(const StageCall& call, std::span<Value> outputs) {
  enum : int32_t { kBegin, kChooseCodings, kMoveRows, kGiveRows, kPlace };
  HEDDLE_ASSIGN_OR_RETURN(const WriteOptions options, WriteOptionsOf(call.node, call.inputs, call.context));
  const std::string path = call.inputs[1]->scalar().ToText();
  const Value rows = RowsToWrite(call);
  const bool by_groups = &call.form == &kStagedWrite;
  const int32_t step = by_groups || call.stage == 0 ? call.stage : call.stage + 1;
  JointWrite write(call.input_infos[0], call.rows.cuts, call.rank, path, options,
                   HeldBytesOf(call.node, kMostHeldByWrite), *call.context.files);
  const auto tell = [](int64_t number, const std::string& bytes, Value* output) -> Status {
    HEDDLE_ASSIGN_OR_RETURN(Matrix share, ShareAsRows(number, bytes));
    *output = Value(std::move(share));
    return OkStatus();
  };
  if (step == kBegin) {
    HEDDLE_ASSIGN_OR_RETURN(const JointWrite::Begun begun, write.Begin(rows));
    HEDDLE_RETURN_IF_ERROR(tell(call.rank, begun.for_all, &outputs[0]));
    const std::string_view cells = begun.cells;
    for (size_t r = 0; r + 1 < outputs.size(); ++r) {
      HEDDLE_ASSIGN_OR_RETURN(outputs[r + 1], FrameOf({&cells, r == 0 ? size_t{1} : size_t{0}}));
    }
    return OkStatus();
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> totals, SharesInRows(call.Received(0).matrix()));
  if (step != kPlace) outputs[0] = call.Received(0);
  if (step == kChooseCodings) {
    HEDDLE_ASSIGN_OR_RETURN(outputs[1], CodingsOf(call, write, totals));
    return OkStatus();
  }
  // The first two stages of a matrix that is not written by groups are one.
  const bool has_codings = by_groups || step != kMoveRows;
  const Value codings = has_codings ? call.Received(1) : Value();
  const Column texts = codings.IsFrame() ? codings.frame().column(0) : Column();
  HEDDLE_RETURN_IF_ERROR(write.UseTotals(totals, texts.rows() > 0 ? texts.TextAt(0) : std::string_view()));
  if (step != kPlace) {
    outputs[1] = codings;
    if (!codings.IsFrame()) {
      HEDDLE_ASSIGN_OR_RETURN(outputs[1], FrameOf({}));
    }
  }
  if (step == kMoveRows) {
    HEDDLE_ASSIGN_OR_RETURN(std::vector<Value> for_others, write.RowsForOthers(rows));
    std::move(for_others.begin(), for_others.end(), outputs.begin() + 2);
    return OkStatus();
  }
  if (step == kGiveRows) {
    HEDDLE_ASSIGN_OR_RETURN(const JointWrite::Given given, write.GiveRows(rows, call.Parts(2)));
    HEDDLE_RETURN_IF_ERROR(tell(0, given.kept, &outputs[2]));
    return tell(call.rank, given.for_all, &outputs[3]);
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> kept, SharesInRows(call.Received(2).matrix()));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> given, SharesInRows(call.Received(3).matrix()));
  HEDDLE_ASSIGN_OR_RETURN(const std::string placed, write.Place(rows, kept.front(), given));
  return tell(call.rank, placed, &outputs[0]);
}

constexpr StagedForm kWriteOfRows = {
    .stages = kWriteStages, .result = StagedResult::kFinished, .applies = WritesRows, .run = RunWriteStage};

}  // namespace

const StagedForm kStagedWrite = {.stages = kGroupStages,
                                 .result = StagedResult::kFinished,
                                 .other = &kWriteOfRows,
                                 .applies = WritesGroups,
                                 .run = RunWriteStage};

// Runs on rank 0. The first input is what all ranks have told; the scalars of the call follow it.
Status FinishStagedWrite(const KernelCall& call, const std::string& path, const WriteOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> placed, SharesInRows(call.inputs[0]->matrix()));
  return FinishJointWrite(placed, call.input_infos[0], path, options, *call.context.files);
}

}  // namespace heddle::ops
