// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/replace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/fuse/build_operator.h"

namespace heddle::compiler::fusion {
namespace {

// One operator of the new graph: it replaces one node or, as a stitch, several.
struct Unit {
  std::vector<NodeId> roots;
  FusionTemplate kind = FusionTemplate::kCell;
  std::vector<NodeId> covered;
  std::optional<BuiltOperator> built;  ///< None: the node itself.
};

class Replacer {
 public:
  Replacer(const Dag& dag, const Memo& memo, const EntryPicker& picker, const ReplaceOptions& options,
           ReplaceReport* report)
      : dag_(dag), graph_(*dag.graph), memo_(memo), picker_(picker), options_(options), report_(report) {}

  Graph Run() {
    FindUnits();
    FindNeeded();
    StitchUnits();
    new_id_.assign(graph_.nodes.size(), kNoNode);
    FindNeeded();
    CountComputed();
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (needed_[static_cast<size_t>(id)]) Emit(id);
    return std::move(result_);
  }

 private:
  // Nodes that stay whatever is fused: nobody reads them, or they are part of an order of effects.
  std::vector<bool> Sinks() const {
    std::vector<bool> sinks(graph_.nodes.size());
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (dag_[id].consumers.empty() || !graph_[id].after.empty()) sinks[static_cast<size_t>(id)] = true;
      for (NodeId earlier : graph_[id].after) sinks[static_cast<size_t>(earlier)] = true;
    }
    return sinks;
  }

  // From the consumers down: which values must be stored, and which unit computes each.
  void FindUnits() {
    unit_of_.assign(graph_.nodes.size(), -1);
    std::vector<bool> needed = Sinks();
    for (NodeId id = graph_.size(); id-- > 0;) {
      if (!needed[static_cast<size_t>(id)]) continue;
      unit_of_[static_cast<size_t>(id)] = static_cast<int>(units_.size());
      units_.push_back(UnitOf(id));
      const Unit& unit = units_.back();
      for (NodeId input : unit.built ? unit.built->inputs : graph_[id].inputs)
        if (input != kNoNode) needed[static_cast<size_t>(input)] = true;
    }
  }

  // Once units are stitched, some values are only computed inside of them.
  void FindNeeded() {
    needed_.assign(graph_.nodes.size(), false);
    const std::vector<bool> sinks = Sinks();
    std::vector<NodeId> work;
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (sinks[static_cast<size_t>(id)]) work.push_back(id);
    while (!work.empty()) {
      const NodeId id = work.back();
      work.pop_back();
      if (needed_[static_cast<size_t>(id)]) continue;
      const Unit& unit = units_[static_cast<size_t>(unit_of_[static_cast<size_t>(id)])];
      needed_[static_cast<size_t>(id)] = true;
      for (NodeId root : unit.roots) needed_[static_cast<size_t>(root)] = true;
      for (NodeId input : unit.built ? unit.built->inputs : graph_[id].inputs)
        if (input != kNoNode) work.push_back(input);
    }
  }

  Unit UnitOf(NodeId id) {
    Unit unit;
    unit.roots = {id};
    unit.covered = {id};
    const Entry* entry = memo_[id].empty() ? nullptr : picker_.PickRoot(id);
    if (entry == nullptr || entry->References() == 0) return unit;
    unit.kind = entry->kind;
    std::set<NodeId> covered;
    Cover(id, entry, entry->kind, &covered);
    unit.covered.assign(covered.begin(), covered.end());
    unit.built = BuildOperator(dag_, unit.kind, unit.roots, unit.covered);
    const Status can_run = CanRun(unit);
    if (can_run.ok()) return unit;
    report_->refused.push_back(fmt::format("{} {}: {}", id, graph_[id].op, can_run.message()));
    unit.built.reset();
    unit.covered = {id};
    unit.kind = FusionTemplate::kCell;
    return unit;
  }

  Status CanRun(const Unit& unit) const {
    if (!unit.built) return Unimplemented("none of the inputs has rows to walk");
    return options_.model.can_run ? options_.model.can_run(unit.built->fused) : OkStatus();
  }

  // Collects the nodes of an operator, in the same walk as PlanCost::AddNode.
  void Cover(NodeId id, const Entry* entry, FusionTemplate kind, std::set<NodeId>* covered) const {
    covered->insert(id);
    if (entry == nullptr) return;
    for (NodeId ref : entry->refs)
      if (ref != kNoNode && !covered->contains(ref)) Cover(ref, picker_.PickInside(ref, kind), kind, covered);
  }

  // The units of needed nodes, in the order of their first nodes.
  std::vector<size_t> NeededUnits() const {
    std::vector<size_t> units;
    std::vector<bool> seen(units_.size(), false);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (!needed_[static_cast<size_t>(id)]) continue;
      const auto u = static_cast<size_t>(unit_of_[static_cast<size_t>(id)]);
      if (!seen[u]) units.push_back(u);
      seen[u] = true;
    }
    return units;
  }

  void StitchUnits() {
    std::vector<PlanUnit> candidates;
    for (const size_t u : NeededUnits())
      candidates.push_back({units_[u].roots, units_[u].kind, units_[u].covered});
    Stitcher stitcher(dag_, options_.model, options_.stitch);
    for (Stitch& stitch : stitcher.Join(candidates).stitches) {
      Unit unit{stitch.roots, StitchKind(dag_, stitch.roots), std::move(stitch.covered), {}};
      unit.built = BuildOperator(dag_, unit.kind, unit.roots, unit.covered);
      for (NodeId root : unit.roots) unit_of_[static_cast<size_t>(root)] = static_cast<int>(units_.size());
      units_.push_back(std::move(unit));
    }
  }

  void CountComputed() {
    computed_.assign(graph_.nodes.size(), 0);
    for (const size_t u : NeededUnits())
      for (NodeId covered : units_[u].covered) ++computed_[static_cast<size_t>(covered)];
  }

  // Adds a node's unit to the result after the units of its inputs. A unit with several results may need
  // nodes that stand behind its first one; dependencies have no cycle, so the recursion ends.
  void Emit(NodeId id) {
    if (new_id_[static_cast<size_t>(id)] != kNoNode) return;
    const Unit& unit = units_[static_cast<size_t>(unit_of_[static_cast<size_t>(id)])];
    const std::vector<NodeId>& inputs = unit.built ? unit.built->inputs : graph_[id].inputs;
    for (NodeId input : inputs)
      if (input != kNoNode) Emit(input);
    for (NodeId earlier : graph_[id].after) Emit(earlier);
    if (unit.built) return EmitFused(unit);
    Node node = graph_[id];
    for (std::vector<NodeId>* list : {&node.inputs, &node.after})
      for (NodeId& other : *list)
        if (other != kNoNode) other = new_id_[static_cast<size_t>(other)];
    new_id_[static_cast<size_t>(id)] = result_.Add(std::move(node));
  }

  void EmitFused(const Unit& unit) {
    Node node;
    const bool several = unit.roots.size() > 1;
    node.op = several ? "fusedSeveral" : "fused";
    for (NodeId input : unit.built->inputs) node.inputs.push_back(new_id_[static_cast<size_t>(input)]);
    node.position = graph_[unit.roots[0]].position;
    node.fused = std::make_shared<const FusedOperator>(unit.built->fused);
    report_->fused.push_back(node.fused);
    std::string again;
    for (NodeId id : unit.covered)
      if (computed_[static_cast<size_t>(id)] > 1) again += (again.empty() ? "" : " ") + graph_[id].op;
    report_->again.push_back(std::move(again));
    if (!several) {
      node.info = graph_[unit.roots[0]].info;
      new_id_[static_cast<size_t>(unit.roots[0])] = result_.Add(std::move(node));
      return;
    }
    node.info = ValueInfo::OfTuple();
    for (NodeId root : unit.roots) node.results.push_back(graph_[root].info);
    const NodeId tuple = result_.Add(std::move(node));
    for (size_t i = 0; i < unit.roots.size(); ++i) {
      Node result = ResultOf(result_, tuple, i);
      result.position = graph_[unit.roots[i]].position;
      new_id_[static_cast<size_t>(unit.roots[i])] = result_.Add(std::move(result));
    }
  }

  const Dag& dag_;
  const Graph& graph_;
  const Memo& memo_;
  const EntryPicker& picker_;
  const ReplaceOptions& options_;
  ReplaceReport* report_;
  std::vector<Unit> units_;
  std::vector<int> unit_of_;   // By node that stays; -1: nobody needs it.
  std::vector<bool> needed_;   // By node: it stands in the result.
  std::vector<int> computed_;  // By node: operators that compute it.
  std::vector<NodeId> new_id_;
  Graph result_;
};

}  // namespace

Result<Graph> Replace(const Dag& dag, const Memo& memo, const EntryPicker& picker,
                      const ReplaceOptions& options, ReplaceReport* report) {
  Graph graph = Replacer(dag, memo, picker, options, report).Run();
  HEDDLE_RETURN_IF_ERROR(Verify(graph));
  return graph;
}

}  // namespace heddle::compiler::fusion
