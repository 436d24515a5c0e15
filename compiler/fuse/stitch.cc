// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/stitch.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "compiler/fuse/template.h"
#include "core/programs/fused_operator.h"

namespace heddle::compiler::fusion {
namespace {

// Below, a pass over the rows costs no more than what every operator costs anyway.
constexpr double kLeastSavedBytes = 256 << 10;
// All pairs are looked at after each merge: so many units of a block take some 15 ms.
constexpr size_t kMostCandidates = 40;

// Some units that are one already, with what the model says of them.
struct Group {
  std::vector<size_t> units;
  std::vector<NodeId> roots, covered;
  std::vector<OperatorInput> inputs;
  int64_t height = 0;
  NodeId pattern = kNoNode;  // Of the CSR values whose entries it walks, as DagNode::pattern; kNoNode: rows.
  bool needs_rows = false;   // It reads or makes dense rows of several columns.
  double bytes = 0;          // Read and written.
  double seconds = 0;  // Modelled.
};

class Stitcher {
 public:
  Stitcher(const Dag& dag, const CostModel& model, const std::vector<PlanUnit>& units,
           const StitchOptions& options)
      : dag_(dag), model_(model), units_(units), options_(options) {}

  std::vector<Stitch> Run() {
    FindReaders();
    for (size_t u = 0; u < units_.size() && groups_.size() < kMostCandidates; ++u)
      if (const int64_t height = HeightOfRows(units_[u]); height > 1) AddGroup(u, height);
    group_of_.assign(units_.size(), -1);
    for (size_t g = 0; g < groups_.size(); ++g) group_of_[groups_[g].units[0]] = static_cast<int>(g);
    while (MergeBest()) {
    }
    return Stitches();
  }

 private:
  struct Pair {
    size_t a, b;
    auto operator<=>(const Pair&) const = default;
  };

  void FindReaders() {
    unit_of_.assign(dag_.nodes.size(), -1);
    readers_.assign(dag_.nodes.size(), {});
    for (size_t u = 0; u < units_.size(); ++u) {
      for (NodeId root : units_[u].roots) unit_of_[static_cast<size_t>(root)] = static_cast<int>(u);
      for (NodeId input : units_[u].inputs)
        if (input != kNoNode) readers_[static_cast<size_t>(input)].push_back(u);
    }
  }

  struct Walk {
    NodeId pattern = kNoNode;
    bool needs_rows = false;
  };
  // What an operator with these nodes walks; nullopt for the entries of several patterns.
  std::optional<Walk> WalkOf(const std::vector<NodeId>& roots, const std::vector<NodeId>& covered) const {
    Walk walk;
    const auto take = [&](NodeId id) {
      if (!dag_[id].sparse || dag_[id].columns < 2) return true;
      if (walk.pattern == kNoNode) walk.pattern = dag_[id].pattern;
      return walk.pattern == dag_[id].pattern;
    };
    for (const NodeId id : covered) {
      const DagNode& node = dag_[id];
      const bool cells = node.op->fusion.use == ops::RowUse::kCells;
      const bool sampled = node.op->fusion.use == ops::RowUse::kSampledProduct;
      if ((cells || sampled) && !take(id)) return std::nullopt;
      const bool is_root = std::find(roots.begin(), roots.end(), id) != roots.end();
      walk.needs_rows |= is_root && cells && !node.sparse && node.columns > 1;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const NodeId input = node.inputs[i];
        if (input == kNoNode || !dag_[input].matrix || node.by_rows[i] == 0) continue;
        if (cells && !take(input)) return std::nullopt;
        walk.needs_rows |= !cells && !sampled && !dag_[input].sparse && dag_[input].columns > 1;
      }
    }
    return walk;
  }

  // True if one walk can do for both: rows, or the entries of one pattern.
  static bool WalkAlike(const Group& a, const Group& b) {
    if (a.pattern == b.pattern) return true;
    if (a.pattern != kNoNode && b.pattern != kNoNode) return false;
    return !(a.pattern == kNoNode ? a : b).needs_rows;
  }

  // The rows that an operator with these nodes walks tile by tile, or by the entries of a CSR matrix; 0 where
  // it walks none.
  int64_t HeightOfRows(const PlanUnit& unit) const {
    for (NodeId id : unit.covered)
      if (dag_[id].op == nullptr) return 0;
    const NodeId root = unit.roots[0];
    const std::optional<Walk> walk = WalkOf(unit.roots, unit.covered);
    if (!walk || (walk->pattern != kNoNode && walk->needs_rows)) return 0;
    if (unit.covered.size() == 1 && walk->pattern == kNoNode) {
      const bool opens = kRowTemplate.open(dag_, root) || kCellTemplate.open(dag_, root) ||
                         dag_[root].op->fusion.use == ops::RowUse::kFullAggregate ||
                         dag_[root].op->fusion.use == ops::RowUse::kColumnAggregate;
      if (!opens) return 0;
    }
    return HeightOf(dag_, root);
  }

  void AddGroup(size_t unit, int64_t height) {
    Group group;
    group.units = {unit};
    group.roots = units_[unit].roots;
    group.covered = units_[unit].covered;
    group.height = height;
    SetWalk(&group);
    Cost(&group);
    groups_.push_back(std::move(group));
  }

  void SetWalk(Group* group) const {
    const std::optional<Walk> walk = WalkOf(group->roots, group->covered);
    group->pattern = walk ? walk->pattern : kNoNode;
    group->needs_rows = !walk || walk->needs_rows;
  }

  // What the cost model of plans adds up of an operator (plan_cost.cc).
  void Cost(Group* group) const {
    OperatorWork work;
    work.kind = FusionTemplate::kRow;
    work.roots = group->roots;
    work.along_entries = group->pattern != kNoNode;
    std::map<NodeId, OperatorInput> inputs;
    const std::set<NodeId> inside(group->covered.begin(), group->covered.end());
    for (NodeId id : group->covered) {
      const NodeWork own = WorkOf(dag_, id, model_.constants);
      work.work.along += own.along;
      work.work.fixed += own.fixed;
      work.work.packed_bytes += own.packed_bytes;
      work.work.scratch_bytes = std::max(work.work.scratch_bytes, own.scratch_bytes);
      ++work.nodes;
      for (size_t i = 0; i < dag_[id].inputs.size(); ++i) {
        const NodeId input = dag_[id].inputs[i];
        if (input == kNoNode || inside.contains(input) || !dag_[input].matrix) continue;
        OperatorInput& read = inputs.try_emplace(input, OperatorInput{.id = input}).first->second;
        const bool by_rows = dag_[id].by_rows[i] != 0;
        read.by_rows |= by_rows;
        read.whole |= !by_rows;
        read.copied |= !by_rows && dag_[input].copied_for == id;
      }
    }
    group->inputs.clear();
    group->bytes = 0;
    for (const auto& [id, input] : inputs) {
      group->inputs.push_back(input);
      group->bytes += dag_[id].bytes;
    }
    for (NodeId root : group->roots) group->bytes += WriteBytes(dag_, root, model_.constants);
    work.inputs = group->inputs;
    work.split = IsSplit(dag_, work, model_);
    group->seconds = TimeOf(dag_, work, model_).total;
  }

  // Both read rows of a matrix, or one those that the other makes.
  bool ShareRows(const Group& a, const Group& b) const {
    const auto reads = [](const Group& group, NodeId id) {
      return std::any_of(group.inputs.begin(), group.inputs.end(),
                         [&](const OperatorInput& input) { return input.id == id && input.by_rows; });
    };
    return std::any_of(a.inputs.begin(), a.inputs.end(),
                       [&](const OperatorInput& input) { return input.by_rows && reads(b, input.id); }) ||
           std::any_of(a.roots.begin(), a.roots.end(), [&](NodeId root) { return reads(b, root); }) ||
           std::any_of(b.roots.begin(), b.roots.end(), [&](NodeId root) { return reads(a, root); });
  }

  // A value that some operator outside reads, or that nothing reads because it is there for its own sake.
  bool IsReadOutside(NodeId root, const std::vector<size_t>& members) const {
    const std::vector<size_t>& readers = readers_[static_cast<size_t>(root)];
    return readers.empty() || std::any_of(readers.begin(), readers.end(), [&](size_t reader) {
             return !std::binary_search(members.begin(), members.end(), reader);
           });
  }

  Group Join(const Group& a, const Group& b) const {
    Group both;
    both.height = a.height;
    std::set_union(a.units.begin(), a.units.end(), b.units.begin(), b.units.end(),
                   std::back_inserter(both.units));
    std::set_union(a.covered.begin(), a.covered.end(), b.covered.begin(), b.covered.end(),
                   std::back_inserter(both.covered));
    std::vector<NodeId> roots;
    std::set_union(a.roots.begin(), a.roots.end(), b.roots.begin(), b.roots.end(), std::back_inserter(roots));
    for (NodeId root : roots)
      if (IsReadOutside(root, both.units)) both.roots.push_back(root);
    SetWalk(&both);
    return both;
  }

  // Is there a way from what the members read back to a member?
  bool HasCycle(const std::vector<size_t>& members) const {
    std::vector<bool> seen(units_.size(), false);
    std::vector<size_t> work;
    const auto push_needs = [&](size_t unit) {
      const auto push = [&](NodeId id) {
        if (id == kNoNode) return;
        const int other = unit_of_[static_cast<size_t>(id)];
        if (other >= 0) work.push_back(static_cast<size_t>(other));
      };
      for (NodeId input : units_[unit].inputs) push(input);
      for (NodeId root : units_[unit].roots)
        for (NodeId earlier : (*dag_.graph)[root].after) push(earlier);
    };
    const auto is_member = [&](size_t unit) {
      return std::binary_search(members.begin(), members.end(), unit);
    };
    for (size_t member : members) push_needs(member);
    std::erase_if(work, is_member);
    while (!work.empty()) {
      const size_t unit = work.back();
      work.pop_back();
      if (is_member(unit)) return true;
      if (seen[unit]) continue;
      seen[unit] = true;
      // Of what is one already all members are needed.
      if (group_of_[unit] >= 0) {
        for (size_t other : groups_[static_cast<size_t>(group_of_[unit])].units) {
          seen[other] = true;
          push_needs(other);
        }
      } else {
        push_needs(unit);
      }
    }
    return false;
  }

  bool MergeBest() {
    std::optional<Pair> best;
    Group best_group;
    double best_saving = 0;
    for (size_t a = 0; a < groups_.size(); ++a)
      for (size_t b = a + 1; b < groups_.size(); ++b) {
        if (groups_[a].units.empty() || groups_[b].units.empty()) continue;
        if (groups_[a].height != groups_[b].height || refused_.contains({a, b})) continue;
        if (!WalkAlike(groups_[a], groups_[b]) || !ShareRows(groups_[a], groups_[b])) continue;
        const auto known = joined_.find({a, b});
        if (known == joined_.end()) {
          Group both = Join(groups_[a], groups_[b]);
          if (both.roots.size() > FusedOperator::kMaxRoots || both.roots.empty()) {
            refused_.insert({a, b});
            continue;
          }
          Cost(&both);
          joined_[{a, b}] = std::move(both);
        }
        const Group& both = joined_.at({a, b});
        const double saving = groups_[a].seconds + groups_[b].seconds - both.seconds;
        const bool saves = groups_[a].bytes + groups_[b].bytes - both.bytes >= kLeastSavedBytes && saving > 0;
        if ((options_.by_cost && !saves) || (best && saving <= best_saving)) continue;
        best = {a, b};
        best_saving = saving;
      }
    if (!best) return false;
    best_group = joined_.at(*best);
    if (HasCycle(best_group.units) || (options_.wants && !options_.wants()) || !CanRun(best_group)) {
      refused_.insert(*best);
      return true;
    }
    for (size_t unit : best_group.units) group_of_[unit] = static_cast<int>(best->a);
    groups_[best->a] = std::move(best_group);
    groups_[best->b].units.clear();
    const auto is_old = [&](const Pair& pair) { return pair.a == best->a || pair.b == best->a; };
    std::erase_if(joined_, [&](const auto& entry) { return is_old(entry.first); });
    std::erase_if(refused_, is_old);
    return true;
  }

  std::optional<BuiltOperator> Build(const Group& group) const {
    const FusionTemplate kind = group.roots.size() > 1 ? FusionTemplate::kStitch : FusionTemplate::kRow;
    return BuildOperator(dag_, kind, group.roots, group.covered);
  }
  bool CanRun(const Group& group) const {
    const std::optional<BuiltOperator> built = Build(group);
    return built && (!model_.can_run || model_.can_run(built->fused));
  }

  std::vector<Stitch> Stitches() {
    DropUnread();
    std::vector<Stitch> stitches;
    for (const Group& group : groups_) {
      if (group.units.size() < 2 || group.roots.empty()) continue;
      std::optional<BuiltOperator> built = Build(group);
      if (!built || (model_.can_run && !model_.can_run(built->fused))) continue;
      stitches.push_back({group.units, group.roots, group.covered, *std::move(built)});
    }
    return stitches;
  }

  // A member may compute what another member reads: where a third operator was to make it, that is read by
  // nobody any more. Keeps the roots that are, following what is needed from the sinks down.
  void DropUnread() {
    std::vector<std::set<NodeId>> read(groups_.size());  // By group.
    std::vector<bool> seen(units_.size(), false);
    std::vector<NodeId> work;
    for (NodeId id = 0; id < dag_.size(); ++id) {
      const std::vector<NodeId>& after = (*dag_.graph)[id].after;
      if (readers_[static_cast<size_t>(id)].empty() || !after.empty()) work.push_back(id);
      work.insert(work.end(), after.begin(), after.end());
    }
    while (!work.empty()) {
      const NodeId id = work.back();
      work.pop_back();
      const int owner = unit_of_[static_cast<size_t>(id)];
      if (owner < 0) continue;
      const auto unit = static_cast<size_t>(owner);
      const int group = group_of_[unit];
      if (group >= 0) read[static_cast<size_t>(group)].insert(id);
      const size_t first = group < 0 ? unit : groups_[static_cast<size_t>(group)].units[0];
      if (seen[first]) continue;
      seen[first] = true;
      if (group < 0) {
        for (NodeId input : units_[unit].inputs)
          if (input != kNoNode) work.push_back(input);
        continue;
      }
      const std::vector<NodeId>& covered = groups_[static_cast<size_t>(group)].covered;
      for (NodeId inside : covered)
        for (NodeId input : dag_[inside].inputs)
          if (input != kNoNode && !std::binary_search(covered.begin(), covered.end(), input))
            work.push_back(input);
    }
    for (size_t g = 0; g < groups_.size(); ++g)
      std::erase_if(groups_[g].roots, [&](NodeId root) { return !read[g].contains(root); });
  }

  const Dag& dag_;
  const CostModel& model_;
  const std::vector<PlanUnit>& units_;
  const StitchOptions& options_;
  std::vector<int> unit_of_;                  // By node: the unit that makes it; -1: none.
  std::vector<std::vector<size_t>> readers_;  // By node.
  std::vector<Group> groups_;                 // Of one that another took in, no units are left.
  std::vector<int> group_of_;                 // By unit; -1: no candidate.
  std::map<Pair, Group> joined_;
  std::set<Pair> refused_;
};

}  // namespace

std::vector<Stitch> FindStitches(const Dag& dag, const CostModel& model, const std::vector<PlanUnit>& units,
                                 const StitchOptions& options) {
  return Stitcher(dag, model, units, options).Run();
}

}  // namespace heddle::compiler::fusion
