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

// Every rank writes its rows of a value that is split. The stages are the steps of JointWrite.
constexpr Reach kTold[] = {Reach::kAll};
constexpr Reach kToldAndRows[] = {Reach::kHere, Reach::kParts};
constexpr Reach kToldAndGiven[] = {Reach::kHere, Reach::kHere, Reach::kAll};
constexpr Stage kWriteStages[] = {{.outputs = kTold, .reads_inputs = true},
                                  {.outputs = kToldAndRows, .reads_inputs = true},
                                  {.outputs = kToldAndGiven, .reads_inputs = true},
                                  {.reads_inputs = true}};

bool WritesRows(const Node&, std::span<const ValueInfo> inputs) { return inputs[0].IsTabular(); }

Status RunWriteStage(const StageCall& call, std::span<Value> outputs) {
  enum : int32_t { kBegin, kMoveRows, kGiveRows, kPlace };
  HEDDLE_ASSIGN_OR_RETURN(const WriteOptions options, WriteOptionsOf(call.node, call.inputs, call.context));
  const std::string path = call.inputs[1]->scalar().ToText();
  const Value rows =
      call.inputs[0]->IsPanels() ? Value(DecodedPanels(call.inputs[0]->panels())) : *call.inputs[0];
  JointWrite write(call.input_infos[0], call.rows.cuts, call.rank, path, options,
                   HeldBytesOf(call.node, kMostHeldByWrite), *call.context.files);
  const auto tell = [](int64_t number, const std::string& bytes, Value* output) -> Status {
    HEDDLE_ASSIGN_OR_RETURN(Matrix share, ShareAsRows(number, bytes));
    *output = Value(std::move(share));
    return OkStatus();
  };
  if (call.stage == kBegin) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string begun, write.Begin(rows));
    return tell(call.rank, begun, &outputs[0]);
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> totals, SharesInRows(call.Received(0).matrix()));
  HEDDLE_RETURN_IF_ERROR(write.UseTotals(totals));
  if (call.stage != kPlace) outputs[0] = call.Received(0);
  if (call.stage == kMoveRows) {
    HEDDLE_ASSIGN_OR_RETURN(std::vector<Value> for_others, write.RowsForOthers(rows));
    std::move(for_others.begin(), for_others.end(), outputs.begin() + 1);
    return OkStatus();
  }
  if (call.stage == kGiveRows) {
    HEDDLE_ASSIGN_OR_RETURN(const JointWrite::Given given, write.GiveRows(rows, call.Parts(1)));
    HEDDLE_RETURN_IF_ERROR(tell(0, given.kept, &outputs[1]));
    return tell(call.rank, given.for_all, &outputs[2]);
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> kept, SharesInRows(call.Received(1).matrix()));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> given, SharesInRows(call.Received(2).matrix()));
  HEDDLE_ASSIGN_OR_RETURN(const std::string placed, write.Place(rows, kept.front(), given));
  return tell(call.rank, placed, &outputs[0]);
}

}  // namespace

const StagedForm kStagedWrite = {
    .stages = kWriteStages, .result = StagedResult::kFinished, .applies = WritesRows, .run = RunWriteStage};

// Runs on rank 0. The first input is what all ranks have told; the scalars of the call follow it.
Status FinishStagedWrite(const KernelCall& call, const std::string& path, const WriteOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> placed, SharesInRows(call.inputs[0]->matrix()));
  return FinishJointWrite(placed, call.input_infos[0], path, options, *call.context.files);
}

}  // namespace heddle::ops
