// SPDX-License-Identifier: Apache-2.0
#include "actor/task_body.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/memory/counted_heap.h"
#include "core/programs/input_infos.h"
#include "core/programs/residence.h"
#include "core/programs/staged_tasks.h"
#include "core/programs/text_format.h"
#include "ops/base/stages.h"
#include "ops/cells/column_pieces.h"
#include "ops/frame/row_pieces.h"
#include "ops/panels/staged_run.h"
#include "ops/panels/view_panels.h"

namespace heddle::actor {
namespace {

// Of a frame whose columns nobody knows, its description as a row of a frame.
Result<Value> ShapeOf(const Value& value, const Node* node) {
  const bool is_frame = value.IsFrame() || (value.IsPanels() && value.panels()->IsFrame());
  if (is_frame && (node == nullptr || node->info.schema == nullptr)) {
    std::string text;
    Value none = value;
    if (value.IsPanels()) {
      HEDDLE_ASSIGN_OR_RETURN(none, value.panels()->Rows(0, 0));
    }
    AppendInfo(ValueInfo::OfFrame(value.shape().rows, none.frame().schema()), &text);
    const std::string_view cell = text;
    HEDDLE_ASSIGN_OR_RETURN(Column column, Column::OfTexts({&cell, 1}));
    auto schema = std::make_shared<const Schema>(Schema{{column.type()}, {}});
    return Value(Frame(std::move(schema), {std::move(column)}));
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix shape, Matrix::Dense(1, 3));
  shape.mutable_data()[0] = static_cast<double>(value.shape().rows);
  shape.mutable_data()[1] = static_cast<double>(value.shape().columns);
  shape.mutable_data()[2] = 0;
  return Value(std::move(shape));
}

// Back from what ShapeOf made of a value of which `info` was known; a row for each rank, if it is split.
FoundSize SizeOfShape(const Value& shape, const ValueInfo& info) {
  FoundSize found{.info = info};
  switch (shape.kind()) {
    case Value::Kind::kPanels:
    case Value::Kind::kScalar: break;  // A run that ended before the shape came.
    case Value::Kind::kMatrix: {
      const Matrix& sizes = shape.matrix();
      found.cuts = {0};
      for (int64_t rank = 0; rank < sizes.rows(); ++rank)
        found.cuts.push_back(found.cuts.back() + static_cast<int64_t>(sizes.At(rank, 0)));
      found.info.shape = {found.cuts.back(), static_cast<int64_t>(sizes.At(0, 1))};
      break;
    }
    case Value::Kind::kFrame: {
      found.cuts = {0};
      const Column parts = shape.frame().column(0);
      for (int64_t rank = 0; rank < parts.rows(); ++rank) {
        TextReader reader(parts.TextAt(rank), "shape");
        found.info = reader.Info();
        found.cuts.push_back(found.cuts.back() + found.info.shape.rows);
      }
      found.info.shape.rows = found.cuts.back();
      break;
    }
  }
  return found;
}

// Rows [begin, end) of the task's dimension.
struct RowRange {
  int64_t begin = 0, end = 0;
};

RowRange RowsOfAct(const Task& task, int64_t act) {
  if (task.panel_rows == 0) return {task.row_begin, task.row_end};
  const int64_t begin = std::min(task.row_begin + act * task.panel_rows, task.row_end);
  return {begin, std::min(begin + task.panel_rows, task.row_end)};
}

// Of a kUnpack, what its act hands on: a panel, a part for a panel of another rank, or the next of `rate` row
// ranges that differ by at most one row.
Result<Value> UnpackPart(const Value& value, const Task& task, int64_t act) {
  if (value.IsScalar()) return value;
  const int64_t part = act % task.rate;
  if (const ops::PartsOfPanels* const parts = ops::PartsIn(value); parts != nullptr)
    return parts->Take(static_cast<size_t>(part));
  if (task.panel_rows > 0) {
    const RowRange rows = RowsOfAct(task, part);
    return ops::SliceRows(value, rows.begin, rows.end);
  }
  const int64_t rows = value.shape().rows;
  return ops::SliceRows(value, rows * part / task.rate, rows * (part + 1) / task.rate);
}

// True if every other task that reads the register of the task's first input must have acted before this one
// acts.
bool ReadsLast(const Plan& plan, const Task& task) {
  if (task.consumed.empty() || task.consumed[0] < 0) return false;
  const Register& source = plan.registers[static_cast<size_t>(task.consumed[0])];
  if (source.producer.rank() != task.id.rank()) return false;
  return std::all_of(source.consumers.begin(), source.consumers.end(), [&](TaskId reader) {
    return reader == task.id ||
           std::any_of(task.control_in.begin(), task.control_in.end(), [&](RegisterId order) {
             return plan.registers[static_cast<size_t>(order)].producer == reader;
           });
  });
}

// What a run calls the value of a source or sink of a variable: a copy on a device is a value of its own.
std::string VariableOf(const Plan& plan, const Task& task) {
  if (task.node < 0 || task.node >= plan.graph.size()) return "";
  const std::string& name = plan.graph[task.node].Text("name");
  const std::vector<RegisterId>& values = task.kind == TaskKind::kSink ? task.consumed : task.produced;
  const bool is_there =
      !values.empty() && values[0] >= 0 && !plan.registers[static_cast<size_t>(values[0])].device.IsHost();
  return is_there ? NameOnDevice(name) : name;
}

// A handle to the rows of a value where the plan has one: of a variable that is in panels on other ranks
// alone.
Value AsPlanned(const Register& reg, const Value& value, const ops::KernelContext& context) {
  const bool is_handle = reg.bytes == 0 && KnownBytes(reg.info) > 0;
  if (!is_handle || value.IsScalar() || value.IsPanels() || context.panels == nullptr) return value;
  return Value(context.panels->Lazy(
      value.shape(), value.IsFrame(),
      [value](int64_t begin, int64_t end) { return ops::SliceRows(value, begin, end); },
      /*is_costly=*/false));
}

}  // namespace

KernelBody::Work KernelBody::WorkOf(const Task& task, const Node* node) {
  if (task.phase == Phase::kReady) {
    const bool is_write = node != nullptr && ops::HasRole(*node, ops::Role::kWrite);
    return is_write && task.kind == TaskKind::kSource ? Work::kKeepRows : Work::kForward;
  }
  if (task.phase == Phase::kStage && task.kind == TaskKind::kAccumulate) return Work::kJoinLists;
  if (task.kind == TaskKind::kAccumulate && node != nullptr && ops::HasRole(*node, ops::Role::kWrite))
    return Work::kAppend;
  if (task.phase == Phase::kTransfer) return Work::kTransfer;
  if (task.phase == Phase::kPanels) {
    if (task.kind == TaskKind::kAccumulate) return task.panel_rows > 0 ? Work::kCollect : Work::kCollectParts;
    const ops::Operator* const op = node == nullptr ? nullptr : ops::FindOperator(node->op);
    return op != nullptr && op->panel_use != nullptr ? Work::kKernel : Work::kLazy;
  }
  switch (task.kind) {
    case TaskKind::kCopy:
    case TaskKind::kRepeat: return Work::kForward;
    case TaskKind::kPack:
    case TaskKind::kAccumulate: return Work::kGather;
    case TaskKind::kUnpack:
      if (task.panel_rows > 0 && task.phase != Phase::kSlice) break;
      return Work::kUnpack;
    default: break;
  }
  const bool is_sink = task.kind == TaskKind::kSink;
  const auto is = [node](std::string_view op) { return node != nullptr && node->Is(op); };
  if (is("variable") && task.consumed.empty()) return Work::kVariable;
  if (task.phase == Phase::kSlice) return Work::kSlice;
  if (task.phase == Phase::kGather) return Work::kGather;
  if (task.phase == Phase::kShape) return is_sink ? Work::kKeep : Work::kShape;
  if (is("literal")) return Work::kLiteral;
  if (is("assign")) return is_sink ? Work::kKeep : Work::kForward;
  if (is("variable")) return is_sink ? Work::kKeep : Work::kForward;
  return Work::kKernel;
}

KernelBody::KernelBody(const PlanInstance& instance, const ops::KernelSource& kernels,
                       ops::KernelContext& context)
    : plan_(instance.shared_plan()), kernels_(kernels), context_(context), tasks_(instance.actors().size()) {
  const Graph& graph = instance.plan().graph;
  for (const Actor& actor : instance.actors()) {
    const Task& task = actor.task();
    Prepared& prepared = tasks_[actor.number()];
    prepared.task = &task;
    if (task.node >= 0 && task.node < graph.size()) {
      prepared.node = &graph[task.node];
      prepared.user = prepared.node->op;
      prepared.input_infos = InputInfos(graph, *prepared.node);
    }
    prepared.work = WorkOf(task, prepared.node);
    const bool acts_on_panels = task.phase == Phase::kPanels && task.kind != TaskKind::kAccumulate;
    if (task.phase == Phase::kStage || acts_on_panels || prepared.work == Work::kCollectParts)
      prepared.staged = FindStaged(instance.plan(), task.node);
    if (acts_on_panels && prepared.staged != nullptr) prepared.work = Work::kStages;
    if (prepared.work == Work::kKernel && IsStageInPanels(instance.plan(), task))
      prepared.work = Work::kStageInPanels;
    prepared.reads_last = prepared.work == Work::kKernel && task.kind == TaskKind::kCompute &&
                          task.phase != Phase::kStage && ReadsLast(instance.plan(), task);
    const bool computes = prepared.work == Work::kKernel || prepared.work == Work::kStages ||
                          prepared.work == Work::kStageInPanels || prepared.work == Work::kJoinLists ||
                          prepared.work == Work::kLazy;
    if (computes && prepared.node != nullptr) prepared.op = ops::FindOperator(prepared.node->op);
    if (prepared.work == Work::kJoinLists && prepared.op != nullptr)
      prepared.form = ops::PartsFormOf(*prepared.op).second;
    else if (prepared.staged != nullptr && prepared.op != nullptr)
      prepared.form = ops::StagedFormAt(*prepared.op, prepared.staged->form);
    if (prepared.form != nullptr && task.phase == Phase::kStage && prepared.work != Work::kJoinLists)
      prepared.has_before =
          ops::HandsOn(prepared.form->stages[static_cast<size_t>(task.stage)]) && task.id.rank() > 0;
    if (prepared.staged != nullptr)
      prepared.makes_values = std::any_of(task.produced.begin(), task.produced.end(), [&](RegisterId id) {
        return !instance.plan().registers[static_cast<size_t>(id)].control;
      });
    if (prepared.work == Work::kVariable) variables_.push_back(&prepared);
    if (prepared.work == Work::kKeep) sinks_.push_back(&prepared);
    if (prepared.work == Work::kVariable || prepared.work == Work::kKeep)
      prepared.variable = VariableOf(instance.plan(), task);
    if (prepared.work == Work::kLiteral) {
      if (const Scalar* literal = prepared.node->FindAttribute("value"); literal != nullptr)
        prepared.held = Value(*literal);
    }
  }
}

Status KernelBody::Begin(std::map<std::string, Value> live_in) {
  for (Prepared* prepared : variables_) {
    const auto found = live_in.find(prepared->variable);
    if (found == live_in.end())
      return Internal("the run of a plan lacks its live-in variable: {}", prepared->variable);
    prepared->held = AsPlanned(plan_->registers[static_cast<size_t>(prepared->task->produced[0])],
                               found->second, context_);
  }
  for (Prepared* prepared : sinks_) prepared->held = Value();
  for (Prepared& prepared : tasks_) {
    prepared.collector.reset();
    prepared.parts.reset();
    prepared.lists.reset();
    prepared.write.reset();
  }
  return OkStatus();
}

Status KernelBody::Perform(size_t number, std::span<const Value* const> inputs, int64_t act,
                           std::span<Value> results) {
  Prepared& prepared = tasks_[number];
  const Task& task = *prepared.task;
  const Value* input = inputs.empty() ? nullptr : inputs.back();
  const bool needs_input = prepared.work == Work::kSlice || prepared.work == Work::kShape ||
                           prepared.work == Work::kKeep || prepared.work == Work::kUnpack ||
                           prepared.work == Work::kCollect || prepared.work == Work::kCollectParts ||
                           prepared.work == Work::kJoinLists || prepared.work == Work::kTransfer;
  if (needs_input && input == nullptr) return Internal("task {} has no input", task.id.index());
  const bool is_on_device = !task.id.device().IsHost();
  const Status status =
      is_on_device ? ActOnDevice(number, inputs, act, results)
                   : WithinMemory(prepared.user, [&] { return Act(prepared, inputs, act, results); });
  return status.ok() || prepared.node == nullptr ? status : status.At(prepared.node->position);
}

Status KernelBody::Act(Prepared& prepared, std::span<const Value* const> inputs, int64_t act,
                       std::span<Value> results) const {
  if (prepared.work == Work::kKernel) return RunKernel(prepared, inputs, act, results);
  if (prepared.work == Work::kStages || prepared.work == Work::kStageInPanels)
    return RunStages(prepared, inputs, results);
  HEDDLE_ASSIGN_OR_RETURN(results[0], Move(prepared, inputs, act));
  return OkStatus();
}

Result<Value> KernelBody::Move(Prepared& prepared, std::span<const Value* const> inputs, int64_t act) const {
  const Task& task = *prepared.task;
  const Value* input = inputs.empty() ? nullptr : inputs[0];
  switch (prepared.work) {
    case Work::kVariable:
      if (task.phase == Phase::kSlice) return ops::SliceRows(prepared.held, task.row_begin, task.row_end);
      // Its register holds the only reference then, so that an assignment to cells need not copy all others.
      if (task.count == 1) return std::exchange(prepared.held, Value());
      return prepared.held;
    case Work::kLiteral: return prepared.held;
    case Work::kSlice:
      if (std::any_of(inputs.begin(), inputs.end(), [](const Value* value) { return value->IsPanels(); }))
        return ViewPanels(prepared, inputs);
      return task.axis == Axis::kColumns ? ops::ColumnsOfValue(*input, task.row_begin, task.row_end)
                                         : ops::SliceRows(*input, task.row_begin, task.row_end);
    case Work::kGather:
      if (task.kind == TaskKind::kAccumulate && input == nullptr) return *inputs[1];
      if (inputs.size() == 1 && input != nullptr && input->IsPanels())
        return input->panels()->Rows(0, input->shape().rows);
      if (task.axis == Axis::kColumns)
        return prepared.node != nullptr && ops::HasRole(*prepared.node, ops::Role::kCbind)
                   ? ops::JoinColumnsAs(inputs, prepared.node->info)
                   : ops::JoinColumns(inputs);
      return prepared.node != nullptr && ops::HasRole(*prepared.node, ops::Role::kRbind)
                 ? ops::JoinRowsAs(inputs, prepared.node->info)
                 : ops::JoinRows(inputs);
    case Work::kShape: return ShapeOf(*input, prepared.node);
    case Work::kKeep: prepared.held = *input; return Value();
    case Work::kForward:
      return input == nullptr ? Value() : *input;  // Whoever hands on control registers has no data.
    case Work::kKeepRows:
      HEDDLE_RETURN_IF_ERROR(ops::KeepRowsOf(plan_->graph, *prepared.node, context_));
      return Value();
    case Work::kUnpack: return UnpackPart(*input, task, act);
    case Work::kCollect: return Collect(prepared, *inputs.back(), act);
    case Work::kCollectParts: return CollectParts(prepared, *inputs.back(), act);
    case Work::kJoinLists: return JoinLists(prepared, *inputs.back(), act);
    case Work::kAppend: return Append(prepared, inputs.subspan(1), act);
    case Work::kLazy: return MakeLazy(prepared, inputs);
    case Work::kTransfer:
    case Work::kStages:
    case Work::kStageInPanels:
    case Work::kKernel: break;
  }
  return Internal("task {} has no work", task.id.index());
}

// Rows of all inputs together, read when they are needed.
Result<Value> KernelBody::ViewPanels(const Prepared& prepared, std::span<const Value* const> inputs) const {
  const Task& task = *prepared.task;
  if (context_.panels == nullptr || prepared.node == nullptr)
    return Internal("task {} has nowhere to keep panels", task.id.index());
  Value joined = *inputs[0];
  // Rows of an rbind come to be stored, and typed, as its result is.
  if (inputs.size() > 1 || ops::HasRole(*prepared.node, ops::Role::kRbind)) {
    HEDDLE_ASSIGN_OR_RETURN(joined, ops::JoinedPanels(inputs, prepared.node->info, *context_.panels));
  }
  const Shape shape = joined.shape();
  if (task.row_begin == 0 && task.row_end == shape.rows) return joined;
  return Value(ops::RangeOfPanels(joined.panels(), {task.row_begin, task.row_end, 0, shape.columns}));
}

Status KernelBody::RunStages(const Prepared& prepared, std::span<const Value* const> inputs,
                             std::span<Value> results) const {
  if (context_.panels == nullptr || prepared.form == nullptr)
    return Internal("task {} has nowhere to keep panels", prepared.task->id.index());
  const auto run_stage = [&](const ops::StagePlace& place, std::span<const Value* const> given,
                             std::span<Value> outputs) {
    return kernels_.Run({.node = *prepared.node,
                         .phase = Phase::kStage,
                         .inputs = given,
                         .input_infos = prepared.input_infos,
                         .context = context_,
                         .op = prepared.op,
                         .stage = &place},
                        outputs);
  };
  const Task& task = *prepared.task;
  const bool is_shared = prepared.work == Work::kStageInPanels;
  const ops::StagedRun run{.form = *prepared.form,
                           .node = *prepared.node,
                           .infos = prepared.input_infos,
                           .rows = prepared.staged->rows,
                           .result_rows = prepared.staged->result_rows,
                           .ranks = is_shared ? plan_->ranks : 1,
                           .rank = is_shared ? static_cast<int32_t>(task.id.rank()) : 0,
                           .store = *context_.panels,
                           .run_stage = run_stage};
  if (!is_shared) return ops::RunStagesInPanels(run, inputs, results);
  const bool reads_inputs = run.form.stages[static_cast<size_t>(task.stage)].reads_inputs;
  const size_t own = reads_inputs ? prepared.node->inputs.size() : 0;
  const Value* const before = prepared.has_before ? inputs.back() : nullptr;
  const auto received = inputs.subspan(own, inputs.size() - own - (before == nullptr ? 0 : 1));
  return ops::RunStageInPanels(run, task.stage, inputs.first(own), received, before,
                               prepared.makes_values ? results : std::span<Value>());
}

Result<Value> KernelBody::Collect(Prepared& prepared, const Value& rows, int64_t act) const {
  const Task& task = *prepared.task;
  if (context_.panels == nullptr) return Internal("task {} has nowhere to keep panels", task.id.index());
  if (act % task.rate == 0) {
    const Shape shape{task.row_end - task.row_begin, rows.shape().columns};
    prepared.collector = context_.panels->Collect(shape, rows.IsFrame());
  }
  HEDDLE_RETURN_IF_ERROR(prepared.collector->Add(rows));
  if ((act + 1) % task.rate != 0) return Value();
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const RowPanels> panels, prepared.collector->Finish());
  prepared.collector.reset();
  return Value(std::move(panels));
}

Result<Value> KernelBody::CollectParts(Prepared& prepared, const Value& part, int64_t act) const {
  const Task& task = *prepared.task;
  if (context_.panels == nullptr || prepared.staged == nullptr)
    return Internal("task {} has nowhere to keep parts", task.id.index());
  if (act % task.rate == 0) {
    const auto panels = static_cast<int64_t>(prepared.staged->rows.cuts.size() - 1) / plan_->ranks;
    prepared.parts =
        std::make_unique<ops::PartsCollector>(*context_.panels, static_cast<size_t>(task.rate / panels));
  }
  HEDDLE_RETURN_IF_ERROR(prepared.parts->Add(part));
  if ((act + 1) % task.rate != 0) return Value();
  const std::unique_ptr<ops::PartsCollector> parts = std::move(prepared.parts);
  return parts->Finish();
}

// `inputs`: those of the node.
Result<Value> KernelBody::Append(Prepared& prepared, std::span<const Value* const> inputs,
                                 int64_t act) const {
  const Task& task = *prepared.task;
  if (act % task.rate == 0) {
    HEDDLE_ASSIGN_OR_RETURN(
        prepared.write, ops::AppendedWrite::Begin(*prepared.node, prepared.input_infos, inputs, context_));
  }
  HEDDLE_RETURN_IF_ERROR(prepared.write->Add(*inputs[0]));
  if ((act + 1) % task.rate != 0) return Value();
  HEDDLE_RETURN_IF_ERROR(prepared.write->Finish());
  prepared.write.reset();
  return Value();
}

Result<Value> KernelBody::JoinLists(Prepared& prepared, const Value& list, int64_t act) const {
  const Task& task = *prepared.task;
  if (prepared.form == nullptr) return Internal("task {} joins lists of no reduction", task.id.index());
  if (act % task.rate == 0) prepared.lists = std::make_unique<ops::JoinedLists>();
  const Split no_cuts;
  const ops::StagePlace stage{
      .form = *prepared.form, .stage = task.stage, .rows = no_cuts, .result_rows = no_cuts};
  const auto join = [&](const Value& left, const Value& right) {
    const Value* const lists[] = {&left, &right};
    return kernels_.Run({.node = *prepared.node,
                         .phase = Phase::kStage,
                         .inputs = lists,
                         .input_infos = prepared.input_infos,
                         .row_begin = task.row_begin,
                         .row_end = task.row_end,
                         .total_rows = task.total_rows,
                         .context = context_,
                         .op = prepared.op,
                         .stage = &stage});
  };
  HEDDLE_RETURN_IF_ERROR(prepared.lists->Add(list, join));
  if ((act + 1) % task.rate != 0) return Value();
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<Value> left, prepared.lists->Finish(join));
  prepared.lists.reset();
  std::vector<const Value*> pointers;
  for (const Value& part : left) pointers.push_back(&part);
  return ops::JoinRows(pointers);
}

Status KernelBody::RunKernel(const Prepared& prepared, std::span<const Value* const> inputs, int64_t act,
                             std::span<Value> results) const {
  const Task& task = *prepared.task;
  if (prepared.node == nullptr) return Internal("task {} has no node", task.id.index());
  std::optional<ops::StagePlace> stage;
  if (task.phase == Phase::kStage) {
    if (prepared.form == nullptr) return Internal("task {} is a stage of no operator", task.id.index());
    stage.emplace(ops::StagePlace{.form = *prepared.form,
                                  .stage = task.stage,
                                  .rank = static_cast<int32_t>(task.id.rank()),
                                  .rows = prepared.staged->rows,
                                  .result_rows = prepared.staged->result_rows,
                                  .before = prepared.has_before ? inputs.back() : nullptr});
    if (prepared.has_before) inputs = inputs.first(inputs.size() - 1);
    if (!prepared.makes_values) results = {};
  }
  return kernels_.Run(CallOf(prepared, inputs, act, stage ? &*stage : nullptr), results);
}

ops::KernelCall KernelBody::CallOf(const Prepared& prepared, std::span<const Value* const> inputs,
                                   int64_t act, const ops::StagePlace* stage) const {
  const Task& task = *prepared.task;
  const RowRange rows = RowsOfAct(task, task.kind == TaskKind::kUnpack ? act % task.rate
                                        : task.panel_rows > 0          ? act
                                                                       : 0);
  return {.node = *prepared.node,
          .phase = task.phase,
          .inputs = inputs,
          .input_infos = prepared.input_infos,
          .row_begin = rows.begin,
          .row_end = rows.end,
          .total_rows = task.total_rows,
          .context = context_,
          .last_read = prepared.reads_last ? const_cast<Value*>(inputs[0]) : nullptr,
          .op = prepared.op,
          .stage = stage};
}

void KernelBody::TakeResults(std::map<std::string, Value>* live_out,
                             std::map<std::string, FoundSize>* sizes) {
  for (Prepared* variable : variables_) variable->held = Value();
  for (Prepared& prepared : tasks_) {  // Of a run that failed.
    prepared.collector.reset();
    prepared.parts.reset();
    prepared.lists.reset();
    prepared.write.reset();
  }
  for (Prepared* sink : sinks_) {
    if (sink->task->phase != Phase::kShape) {
      live_out->insert_or_assign(sink->variable, std::move(sink->held));
    } else {
      sizes->insert_or_assign(
          sink->variable, SizeOfShape(sink->held, sink->node == nullptr ? ValueInfo() : sink->node->info));
    }
    sink->held = Value();
  }
}

}  // namespace heddle::actor
