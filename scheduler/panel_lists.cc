// SPDX-License-Identifier: Apache-2.0
#include "scheduler/panel_lists.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>
#include <vector>

#include "core/programs/input_infos.h"
#include "core/programs/staged_tasks.h"
#include "core/programs/task_places.h"
#include "core/values/panels.h"
#include "ops/base/operator.h"
#include "ops/reduction/joined_lists.h"
#include "ops/reduction/reduction_tasks.h"

namespace heddle::scheduler {

ops::PayloadUnits UnitsOfLists(const Graph& graph, const Task& task, size_t result) {
  const Node& node = graph[task.node];
  const ops::Operator* const op = ops::FindOperator(node.op);
  const ops::StagedForm* const form = op == nullptr ? nullptr : ops::PartsFormOf(*op).second;
  if (form == nullptr) return {};
  const std::vector<ValueInfo> inputs = InputInfos(graph, node);
  const ops::PayloadUnits units = form->units(node, inputs, result);
  return units.is_row && units.count > 1 ? units : ops::PayloadUnits();
}

namespace {

constexpr double kPlaceBytes = 512;  // Of a node: its place in the tree, and gaps of its payload.

int64_t ToBytes(double bytes) {
  return bytes < 1e18 ? static_cast<int64_t>(bytes) : std::numeric_limits<int64_t>::max();
}

// Leaves are granules or, where payloads are small, aligned parts of them: nodes of such leaves are left at
// the end of the last granule, where that is not full.
int64_t NodesOfLowLeaves(int64_t end, int64_t granule, const ops::PayloadUnits& units) {
  constexpr double kMostOfLowLeaves = 512 << 10;
  return end % granule == 0 || units.bytes > kMostOfLowLeaves
             ? 0
             : std::bit_width(static_cast<uint64_t>(granule));
}

// What the nodes have of each result that a task reduces rows to, with the register of that.
std::vector<std::pair<RegisterId, ops::PayloadUnits>> ReductionsOf(const Plan& plan, const Task& task) {
  std::vector<std::pair<RegisterId, ops::PayloadUnits>> reductions;
  if (task.node == kNoNode || (task.phase != Phase::kPartial && task.phase != Phase::kWhole))
    return reductions;
  const Node& node = plan.graph[task.node];
  const ops::Operator* const op = ops::FindOperator(node.op);
  if (op == nullptr || op->staged == nullptr) return reductions;
  const std::vector<ValueInfo> inputs = InputInfos(plan.graph, node);
  const ops::RowRule rule = ops::RowRuleOf(node, inputs);
  if (rule != ops::RowRule::kReduce && rule != ops::RowRule::kMixed) return reductions;
  for (size_t i = 0; i < task.produced.size(); ++i) {
    const Register& reg = plan.registers[static_cast<size_t>(task.produced[i])];
    if (reg.control || (rule == ops::RowRule::kMixed && !op->reduces(node, i))) continue;
    const ops::PayloadUnits units = UnitsOfLists(plan.graph, task, i);
    if (units.count > 1) reductions.emplace_back(reg.id, units);
  }
  return reductions;
}

// The rows of a task, or of an act of it, as one panel.
PanelRegion RowsOf(const Task& task, int64_t begin, int64_t end) {
  const int64_t granule = Granule(task.total_rows);
  return {.begin = begin,
          .end = end,
          .height = std::max<int64_t>(1, CeilDivide(end, granule) - begin / granule) * granule};
}

// Fills in the bytes of lists, and of what tasks make of lists that they read.
class ListBytes {
 public:
  explicit ListBytes(Plan* plan) : plan_(*plan), places_(plan->tasks), lists_(plan->registers.size()) {}

  void Run() {
    for (const Task& task : plan_.tasks) {
      if (task.phase != Phase::kPartial) continue;
      for (const auto& [id, units] : ReductionsOf(plan_, task))
        lists_[Index(id)] = {true, units, task.row_begin, task.row_end, task.total_rows};
    }
    for (Register& reg : plan_.registers) {
      if (reg.control || reg.bytes > 0 || reg.info.IsSized()) continue;
      reg.bytes = ToBytes(BytesOf(reg.id));
    }
  }

 private:
  // Tree nodes over rows [begin, end) of total_rows, of a share of their units.
  struct List {
    bool is_known = false;  // Nothing, where there is no list.
    ops::PayloadUnits units = {};
    int64_t begin = 0, end = 0, total_rows = 0;
    double share = 1;
    double gathered = 0;  // Of lists one below the other.
  };
  static size_t Index(RegisterId id) { return static_cast<size_t>(id); }

  double BytesOf(RegisterId id) {
    const List& list = Of(id);
    if (list.gathered > 0 || list.units.count < 2) return list.gathered;
    Task rows;
    rows.total_rows = list.total_rows;
    const PanelRegion all = RowsOf(rows, list.begin, list.end);
    const auto bytes = static_cast<double>(PayloadBytesOf(all, list.total_rows, list.units).of_list);
    return list.share == 1 ? bytes : kMostNodes * kPlaceBytes + bytes * list.share;
  }

  const List& Of(RegisterId id) {
    List& list = lists_[Index(id)];
    if (list.is_known) return list;
    list.is_known = true;
    const size_t place = places_.Of(plan_.registers[Index(id)].producer);
    if (place == TaskPlaces::kNone || plan_.registers[Index(id)].info.IsSized()) return list;
    const Task& task = plan_.tasks[place];
    if (task.kind == TaskKind::kCopy) {
      list = Of(task.consumed[0]);
    } else if (task.kind == TaskKind::kCompute && task.phase == Phase::kGather) {
      for (const RegisterId input : task.consumed)
        if (input >= 0) list.gathered += BytesOf(input);
    } else if (IsJoin(task)) {
      Join(task, &list);
    }
    return list;
  }

  // Lists of ranks that follow each other are joined as far as the tree allows.
  void Join(const Task& task, List* joined) {
    for (const RegisterId input : task.consumed) {
      if (input < 0) continue;
      const List& list = Of(input);
      if (list.units.count < 2) continue;
      const bool is_first = joined->units.count < 2;
      joined->begin = is_first ? list.begin : std::min(joined->begin, list.begin);
      joined->end = is_first ? list.end : std::max(joined->end, list.end);
      joined->total_rows = list.total_rows;
      joined->units = list.units;
    }
    const auto rows = [&](int64_t unit) { return static_cast<double>(joined->units.RowsBefore(unit)); };
    if (joined->units.count > 1)
      joined->share = (rows(task.row_end) - rows(task.row_begin)) / rows(joined->units.count);
  }

  // Whether the task joins lists for some units of a reduction.
  bool IsJoin(const Task& task) const {
    if (task.phase != Phase::kStage || task.node == kNoNode) return false;
    const StagedNode* const staged = FindStaged(plan_, task.node);
    const ops::Operator* const op = ops::FindOperator(plan_.graph[task.node].op);
    return staged != nullptr && op != nullptr && ops::StagedFormAt(*op, staged->form)->units != nullptr &&
           task.stage % ops::kStagesOfReduction == ops::kJoinParts;
  }

  static constexpr double kMostNodes = 64;  // That a list has, about: of each a place beside its cells.

  Plan& plan_;
  const TaskPlaces places_;
  std::vector<List> lists_;
};

}  // namespace

void CountLists(Plan* plan) { ListBytes(plan).Run(); }

double PayloadsAtWork(const Plan& plan, const Task& task, int threads) {
  double bytes = 0;
  const int64_t rows = task.panel_rows > 0 ? task.panel_rows : task.row_end - task.row_begin;
  for (const auto& [id, units] : ReductionsOf(plan, task)) {
    const int64_t granules = CeilDivide(rows, Granule(task.total_rows));
    // Of a triangle the nodes have all cells until they are handed on.
    const double payload = units.triangle ? 2 * units.bytes : units.bytes;
    bytes += ops::BytesAtWork(payload, granules, threads);
    const PanelRegion act = RowsOf(task, task.row_begin, task.row_begin + rows);
    const auto list = static_cast<double>(PayloadBytesOf(act, task.total_rows, units).of_list);
    if (units.triangle) bytes += 2 * list;
    if (task.phase == Phase::kWhole && !units.triangle) bytes += list;
  }
  return bytes;
}

PayloadBytes PayloadBytesOf(const PanelRegion& region, int64_t total, const ops::PayloadUnits& units) {
  constexpr int64_t kForJoin = 2;  // A copy of what is joined, and what it becomes.
  const int64_t granule = Granule(total);
  const ops::HeldPayloads held = ops::PayloadsHeld(region.begin / granule, CeilDivide(region.end, granule),
                                                   std::max<int64_t>(1, region.height / granule));
  const auto bytes = [&](int64_t payloads) {
    const int64_t all = payloads + NodesOfLowLeaves(region.end, granule, units);
    return ToBytes(static_cast<double>(all) * (units.bytes + kPlaceBytes));
  };
  // Those that are left are put one below the other, and copied once more when they are joined.
  return {bytes(held.of_list), bytes(std::max(held.most + kForJoin, 2 * held.left))};
}

}  // namespace heddle::scheduler
