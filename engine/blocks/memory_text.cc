// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/memory_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "compiler/optimize/static/written_files.h"
#include "core/programs/fused_operator.h"
#include "core/programs/staged_tasks.h"
#include "core/values/panels.h"
#include "core/values/sizes.h"
#include "engine/blocks/amount.h"
#include "ops/base/operator.h"
#include "ops/fused/fused.h"
#include "ops/panels/staged_run.h"
#include "scheduler/memory_of_plan.h"
#include "scheduler/passes/plan_passes.h"

namespace heddle::engine {
namespace {

std::string NameOf(const Node& node) { return IsFused(node) ? ops::NameOf(*node.fused) : node.op; }

const Register& RegisterOf(const Plan& plan, RegisterId id) {
  return plan.registers[static_cast<size_t>(id)];
}

// Whether rows that a task makes when they are read take long to make.
bool IsCostly(const Plan& plan, const Task& task, ops::Files* files) {
  const Node& node = plan.graph[task.node];
  const ops::Operator& op = *ops::FindOperator(node.op);
  if (op.row_origin == nullptr) return false;
  const std::optional<Scalar> path = compiler::LiteralPath(plan.graph, node);
  if (!path || files == nullptr) return true;
  ops::KernelContext context;
  context.files = files;
  const Value value(*path);
  std::vector<const Value*> inputs(node.inputs.size(), nullptr);
  inputs[0] = &value;
  const Result<ops::RowOrigin> origin = op.row_origin(node, inputs, context);
  return !origin.ok() || origin->is_costly;
}

// How a task acts on panels.
enum class OnPanels : uint8_t {
  kNone,
  kLazy,    // It makes a handle to rows that are made when they are read.
  kStages,  // It acts once, in stages over panels.
  kBlocks,  // A product, block by block.
  kView,    // Its rows are those of its operands.
};
OnPanels OnPanelsOf(const Plan& plan, const Task& task) {
  if (IsStageInPanels(plan, task)) return OnPanels::kStages;
  if (task.phase != Phase::kPanels || task.kind != TaskKind::kCompute) return OnPanels::kNone;
  if (FindStaged(plan, task.node) != nullptr) return OnPanels::kStages;
  const Node& node = plan.graph[task.node];
  switch (ops::PanelUseOf(plan.graph, node)) {
    case ops::PanelUse::kViews: return OnPanels::kView;
    case ops::PanelUse::kComputes: return OnPanels::kBlocks;
    case ops::PanelUse::kReads:
    case ops::PanelUse::kAppends:
    case ops::PanelUse::kNone: break;
  }
  return OnPanels::kLazy;
}
bool IsLazy(const Plan& plan, const Task& task) { return OnPanelsOf(plan, task) == OnPanels::kLazy; }
bool IsCollected(const Task& task) {
  return task.phase == Phase::kPanels && task.kind == TaskKind::kAccumulate;
}

// The task makes values for panels, in a stage on several ranks.
bool KeepsParts(const Plan& plan, const Task& task) {
  if (!IsStageInPanels(plan, task)) return false;
  const ops::Operator& op = *ops::FindOperator(plan.graph[task.node].op);
  const ops::StagedForm& form = *ops::StagedFormAt(op, FindStaged(plan, task.node)->form);
  const ops::Stage& stage = form.stages[static_cast<size_t>(task.stage)];
  for (size_t i = 0; i < task.produced.size(); ++i)
    if (ops::IsKeptInPanels(stage, plan.ranks, static_cast<int32_t>(task.id.rank()), i)) return true;
  return false;
}

// Bytes of the values to which a task makes handles.
int64_t HandleBytes(const Plan& plan, const Task& task, const std::vector<bool>& handles) {
  int64_t bytes = 0;
  for (const RegisterId id : task.produced)
    if (handles[static_cast<size_t>(id)]) bytes = SaturatingSum(bytes, KnownBytes(RegisterOf(plan, id).info));
  return bytes;
}

// What the tasks of a node do on the first rank that has some.
struct NodeMemory {
  int64_t rank = -1;
  int64_t ranks = 0;  // That have some.
  std::optional<size_t> pass;
  OnPanels on_panels = OnPanels::kNone;
  int64_t panels = 0, rows = 0, panel_bytes = 0;
  int64_t held_bytes = 0;      // Of what acts once on panels.
  int64_t whole_bytes = 0;     // Of its result, where it is whole,
  int64_t together_bytes = 0;  // of operands that are put together for it,
  int64_t kept_bytes = 0;      // and of rows that the panel store keeps.
  bool appends = false;        // Panels, to its file.
  bool reads_handle = false;   // Of a write: it reads its rows from there.
  bool has_result = false, is_lazy = false, is_costly = false, is_handle = false, is_sparse = false;
};

class PlanMemoryText {
 public:
  PlanMemoryText(const Plan& plan, ops::Files* files)
      : plan_(plan), files_(files), handles_(scheduler::HandlesOf(plan)), nodes_(plan.graph.nodes.size()) {
    for (int32_t rank = 0; rank < plan_.ranks; ++rank) Add(rank);
  }

  std::string Text() const {
    std::string text;
    for (NodeId id = 0; id < plan_.graph.size(); ++id) text += LineOf(id);
    for (size_t pass = 0; pass < passes_.size(); ++pass) {
      text +=
          fmt::format("  pass {}: {} {}", pass + 1, passes_[pass].acts,
                      passes_[pass].is_exchange ? "parts from each other worker, between stages" : "panels");
      if (passes_[pass].read_bytes > 0)
        text += fmt::format(", reads {} of rows that are elsewhere",
                            Amount(static_cast<double>(passes_[pass].read_bytes)));
      text += '\n';
    }
    return text;
  }

 private:
  struct Pass {
    int64_t acts = 0;
    int64_t read_bytes = 0;    // Of handles, of the rank that reads the most.
    bool is_exchange = false;  // What it collects are parts for panels of stages.
  };

  bool IsHandle(RegisterId id) const { return id >= 0 && handles_[static_cast<size_t>(id)]; }
  // Of an operator whose rows are those of its operands: its task on one of several workers.
  bool IsViewOfParts(const Task& task) const {
    return task.kind == TaskKind::kCompute && task.phase == Phase::kSlice && task.node != kNoNode &&
           ops::PanelUseOf(plan_.graph, plan_.graph[task.node]) == ops::PanelUse::kViews &&
           IsHandle(task.produced[0]);
  }
  // The task reads rows from a handle.
  bool ReadsHandle(const Task& task) const { return !task.consumed.empty() && IsHandle(task.consumed[0]); }

  void Add(int32_t rank) {
    const scheduler::TaskRange range = scheduler::TasksOfRank(plan_, rank);
    const std::vector<scheduler::PlanPass> passes = scheduler::PassesOf(plan_, range.first, range.last);
    if (passes_.size() < passes.size()) passes_.resize(passes.size());
    size_t at = 0;
    std::vector<int64_t> read(passes.size(), 0);
    std::set<NodeId> met;
    for (size_t i = range.first; i < range.last; ++i) {
      while (at < passes.size() && i - range.first >= passes[at].end) ++at;
      const bool is_in_pass = at < passes.size() && i - range.first >= passes[at].begin;
      const Task& task = plan_.tasks[i];
      if (is_in_pass && IsCollected(task) && task.panel_rows == 0) passes_[at].is_exchange = true;
      if (is_in_pass && task.kind == TaskKind::kUnpack && ReadsHandle(task))
        read[at] = SaturatingSum(read[at], KnownBytes(RegisterOf(plan_, task.consumed[0]).info));
      if (task.node == kNoNode) continue;
      NodeMemory& node = nodes_[static_cast<size_t>(task.node)];
      if (met.insert(task.node).second) ++node.ranks;
      if (node.rank < 0) node.rank = rank;
      if (node.rank == rank) AddTask(task, is_in_pass ? std::optional(at) : std::nullopt, &node);
    }
    for (size_t pass = 0; pass < passes.size(); ++pass) {
      passes_[pass].acts = std::max(passes_[pass].acts, passes[pass].acts);
      passes_[pass].read_bytes = std::max(passes_[pass].read_bytes, read[pass]);
    }
  }

  void AddTask(const Task& task, std::optional<size_t> pass, NodeMemory* node) const {
    const OnPanels on_panels = IsViewOfParts(task) ? OnPanels::kView : OnPanelsOf(plan_, task);
    if (on_panels != OnPanels::kNone && on_panels != OnPanels::kLazy) {
      node->has_result = true;
      node->on_panels = on_panels;
      node->kept_bytes = on_panels == OnPanels::kView ? 0 : HandleBytes(plan_, task, handles_);
      node->held_bytes = scheduler::HeldOfPanels(plan_, task);
      for (const RegisterId id : task.produced)
        node->whole_bytes = SaturatingSum(node->whole_bytes, RegisterOf(plan_, id).bytes);
      if (const StagedNode* const staged = FindStaged(plan_, task.node); staged != nullptr) {
        const auto panels = static_cast<int64_t>(staged->rows.cuts.size()) - 1;
        // Of stages that the ranks compute together; else each rank has all panels.
        node->panels = task.phase == Phase::kStage ? panels / plan_.ranks : panels;
      }
      return;
    }
    if (IsLazy(plan_, task)) {
      node->is_lazy = node->has_result = true;
      node->is_costly = IsCostly(plan_, task, files_);
      node->kept_bytes = HandleBytes(plan_, task, handles_);
      return;
    }
    if (IsCollected(task)) {
      node->kept_bytes = SaturatingSum(node->kept_bytes, HandleBytes(plan_, task, handles_));
      return;
    }
    if (task.phase == Phase::kGather && task.kind == TaskKind::kCompute && ReadsHandle(task)) {
      for (const RegisterId id : task.produced)
        node->together_bytes = SaturatingSum(node->together_bytes, RegisterOf(plan_, id).bytes);
      return;
    }
    if ((task.kind == TaskKind::kSink || task.phase == Phase::kStage) && ReadsHandle(task) &&
        ops::HasRole(plan_.graph[task.node], ops::Role::kWrite)) {
      node->reads_handle = true;
      return;
    }
    const bool computes = task.phase == Phase::kWhole || task.phase == Phase::kPartial ||
                          task.phase == Phase::kFinish || task.phase == Phase::kStage;
    if (!computes || task.kind == TaskKind::kRepeat || task.kind == TaskKind::kCopy) return;
    int64_t bytes = 0;
    for (const RegisterId id : task.produced) {
      const Register& reg = RegisterOf(plan_, id);
      bytes = SaturatingSum(bytes, reg.bytes);
      if (!reg.control && reg.info.IsMatrix() && reg.info.format == Format::kSparse) node->is_sparse = true;
      if (IsHandle(id) && !pass) node->is_handle = true;
    }
    node->has_result = true;
    if (task.panel_rows > 0 && pass) {
      node->appends |= task.kind == TaskKind::kAccumulate;
      node->pass = pass;
      node->rows = std::min(task.panel_rows, task.row_end - task.row_begin);
      node->panels = CeilDivide(task.row_end - task.row_begin, task.panel_rows);
      node->panel_bytes = SaturatingSum(node->panel_bytes, bytes);
    } else if (task.kind != TaskKind::kSink) {
      node->whole_bytes = std::max(node->whole_bytes, bytes);
    }
  }

  static bool IsTold(const Graph& graph, const Node& node) {
    if (node.Is("assign") || node.Is("result") || node.Is("literal")) return false;
    const auto is_tabular = [](const ValueInfo& info) { return info.IsTabular(); };
    return std::any_of(ResultsOf(node).begin(), ResultsOf(node).end(), is_tabular) ||
           std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](NodeId input) { return input != kNoNode && is_tabular(graph[input].info); });
  }

  std::string LineOf(NodeId id) const {
    const Node& node = plan_.graph[id];
    const NodeMemory& memory = nodes_[static_cast<size_t>(id)];
    if (memory.rank < 0 || !IsTold(plan_.graph, node)) return "";
    std::string text = fmt::format("  line {} {}", node.position.line,
                                   node.Is("variable") ? node.Text("name") : NameOf(node));
    for (const ValueInfo& info : ResultsOf(node))
      if (info.IsTabular()) text += fmt::format(" {}", info.shape);
    text += ": " + StateOf(node, memory);
    if (memory.ranks > 1) text += fmt::format(", on {} workers", memory.ranks);
    return text + "\n";
  }

  static std::string StateOf(const Node& node, const NodeMemory& memory) {
    const auto amount = [](int64_t bytes) { return Amount(static_cast<double>(bytes)); };
    std::string text;
    const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
    if (memory.is_lazy)
      add(memory.is_costly
              ? fmt::format("its rows are made once, kept in memory or spilled, {}",
                            amount(memory.kept_bytes))
              : fmt::format("its rows are made whenever they are read, {}", amount(memory.kept_bytes)));
    else if (memory.is_handle)
      add("its rows are in panels");
    if (memory.on_panels == OnPanels::kView)
      add("its rows are those of its operands, read when they are needed");
    if (memory.reads_handle) add("its rows are read from where they are kept, a few at a time");
    if (memory.on_panels == OnPanels::kStages)
      add(fmt::format("in stages over {} panels, of which it holds {}", memory.panels,
                      amount(memory.held_bytes)));
    if (memory.on_panels == OnPanels::kBlocks)
      add(fmt::format("in blocks of the result, of which it holds {}", amount(memory.held_bytes)));
    if (memory.together_bytes > 0)
      add(fmt::format("its operands are put together, {}", amount(memory.together_bytes)));
    if (memory.pass)
      add(fmt::format("streams in pass {}, {} panel{} of {} rows{}", *memory.pass + 1, memory.panels,
                      memory.panels == 1 ? "" : "s", memory.rows,
                      memory.panel_bytes > 0 ? ", " + amount(memory.panel_bytes) : "") +
          (memory.appends ? ", each of which is appended to its file" : ""));
    if (memory.kept_bytes > 0 && !memory.is_lazy)
      add(fmt::format("its rows are kept in memory or spilled, {}", amount(memory.kept_bytes)));
    for (const ValueInfo& info : ResultsOf(node))
      if (info.IsTabular() && !info.IsSized()) {
        add("its size is known only when it runs");
        return text;
      }
    if (memory.whole_bytes > 0)
      add(fmt::format("{}, {}{}", memory.pass ? "its result is whole" : "whole", amount(memory.whole_bytes),
                      memory.is_sparse ? " and its entries" : ""));
    if (text.empty()) add(memory.has_result ? "whole" : "whole, elsewhere");
    return text;
  }

  const Plan& plan_;
  ops::Files* const files_;
  const std::vector<bool> handles_;
  std::vector<NodeMemory> nodes_;
  std::vector<Pass> passes_;
};

}  // namespace

std::string LinesOfMemory(const Plan& plan, ops::Files* files) { return PlanMemoryText(plan, files).Text(); }

bool IsRemade(const Plan& plan, NodeId assign, ops::Files* files) {
  for (const Task& sink : plan.tasks) {
    if (sink.node != assign || sink.kind != TaskKind::kSink || sink.phase != Phase::kWhole) continue;
    const TaskId producer = RegisterOf(plan, sink.consumed[0]).producer;
    for (const Task& task : plan.tasks)
      if (task.id == producer && IsLazy(plan, task)) return !IsCostly(plan, task, files);
  }
  return false;
}

int64_t MostSpilled(const Plan& plan, int32_t rank, ops::Files* files) {
  const scheduler::TaskRange range = scheduler::TasksOfRank(plan, rank);
  const std::vector<bool> handles = scheduler::HandlesOf(plan);
  int64_t bytes = 0;
  for (size_t i = range.first; i < range.last; ++i) {
    const Task& task = plan.tasks[i];
    if (IsCollected(task) || (IsLazy(plan, task) && IsCostly(plan, task, files)))
      bytes = SaturatingSum(bytes, HandleBytes(plan, task, handles));
    const OnPanels on_panels = OnPanelsOf(plan, task);
    if (on_panels != OnPanels::kStages && on_panels != OnPanels::kBlocks) continue;
    if (KeepsParts(plan, task)) {  // What it makes for all ranks, and what it gets for the next stage.
      double sent = 0;
      for (const NodeId input : plan.graph[task.node].inputs)
        if (input != kNoNode) sent += static_cast<double>(2 * KnownBytes(plan.graph[input].info));
      const double share = static_cast<double>(task.row_end - task.row_begin) /
                           static_cast<double>(std::max<int64_t>(task.total_rows, 1));
      bytes = SaturatingSum(bytes, static_cast<int64_t>(std::min(sent * share, 9e18)));
    }
    // Beside the result, what stages send to each other, or slices of operands and blocks of the result.
    bytes = SaturatingSum(bytes, SaturatingProduct(2, HandleBytes(plan, task, handles)));
    for (const RegisterId id : task.consumed)
      if (id >= 0) bytes = SaturatingSum(bytes, KnownBytes(RegisterOf(plan, id).info));
  }
  return bytes;
}

}  // namespace heddle::engine
