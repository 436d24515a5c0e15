// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/stitch.h"

#include <algorithm>
#include <utility>

#include "compiler/fuse/build_operator.h"
#include "compiler/fuse/template.h"
#include "core/programs/fused_operator.h"
#include "ops/aggregate/aggregate.h"

namespace heddle::compiler::fusion {
namespace {

// At most so many pairs are looked at. In a block where one matrix has hundreds of readers, the rest stay
// alone.
constexpr size_t kMostPairs = 2000;

size_t Index(NodeId id) { return static_cast<size_t>(id); }

bool Contains(const std::vector<size_t>& sorted, size_t unit) {
  return std::binary_search(sorted.begin(), sorted.end(), unit);
}

template <typename T>
std::vector<T> Union(const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> both;
  both.reserve(a.size() + b.size());
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

// Aggregates of cells of one shape; along the entries of CSR matrices only sums go with sums.
bool AreReducedTogether(const Dag& dag, NodeId a, NodeId b) {
  const DagNode &x = dag[dag[a].inputs[0]], &y = dag[dag[b].inputs[0]];
  const auto join = [&](NodeId id) { return ops::JoinOf(ops::FindAggregate((*dag.graph)[id].op)->kind); };
  return x.rows == y.rows && x.columns == y.columns && x.sparse == y.sparse &&
         (!x.sparse || join(a) == join(b));
}

// The work of a node in a pass over rows. The pass computes no CSR values, so that one which is aggregated is
// read, row by row, and takes what its entries take.
NodeWork WorkByRows(const Dag& dag, NodeId id, NodeWork work) {
  if (!IsAggregate(dag[id]) || !dag[dag[id].inputs[0]].sparse) return work;
  work.fixed += work.along * dag[dag[id].inputs[0]].sparsity;
  work.along = work.elsewhere = 0;
  return work;
}

bool IsMultiAggregate(const Dag& dag, const std::vector<NodeId>& roots) {
  return roots.size() <= FusedOperator::kMostAggregates &&
         std::all_of(roots.begin(), roots.end(), [&](NodeId root) {
           return IsFullAggregate(dag[root]) && AreReducedTogether(dag, roots[0], root);
         });
}

}  // namespace

FusionTemplate StitchKind(const Dag& dag, const std::vector<NodeId>& roots) {
  if (roots.size() < 2) return FusionTemplate::kRow;
  return IsMultiAggregate(dag, roots) ? FusionTemplate::kMultiAggregate : FusionTemplate::kStitch;
}

Stitcher::Stitcher(const Dag& dag, const CostModel& model, StitchOptions options,
                   const std::vector<NodeId>* scope)
    : dag_(dag), model_(model), options_(std::move(options)) {
  const size_t count = dag.nodes.size();
  opens_.assign(count, 0);
  unit_of_.assign(count, -1);
  readers_.assign(count, {});
  input_mark_.assign(count, 0);
  input_at_.assign(count, 0);
  inside_mark_.assign(count, 0);
  is_needed_.assign(count, 0);
  work_.resize(count);
  row_work_.resize(count);
  if (scope != nullptr) {
    in_scope_.assign(count, 0);
    for (const NodeId id : *scope) in_scope_[Index(id)] = 1;
  }
  for (NodeId id = 0; id < dag.size(); ++id) {
    if (scope != nullptr && in_scope_[Index(id)] == 0) continue;
    opens_[Index(id)] = kStitchTemplate.open(dag, id);
    if (dag[id].op != nullptr) work_[Index(id)] = WorkOf(dag, id);
    if (opens_[Index(id)] != 0) row_work_[Index(id)] = WorkByRows(dag, id, work_[Index(id)]);
    const std::vector<NodeId>& consumers = dag[id].consumers;
    is_needed_[Index(id)] =
        scope != nullptr &&
        std::any_of(consumers.begin(), consumers.end(), [&](NodeId to) { return in_scope_[Index(to)] == 0; });
  }
}

StitchedUnits Stitcher::Join(const std::vector<PlanUnit>& units) {
  units_ = &units;
  FindReaders();
  // Asking the executor takes longer than everything else here, and it seldom refuses. So it is asked about
  // the finished stitches first; only if it refuses one of them, all merges are done again and it is asked
  // about each.
  for (const bool always : {false, true}) {
    asks_always_ = always;
    Merge();
    if (std::optional<StitchedUnits> result = Result()) return *std::move(result);
  }
  return {};
}

void Stitcher::Merge() {
  AddGroups();
  AddPairs();
  while (MergeBest()) {
  }
}

void Stitcher::FindReaders() {
  for (const NodeId id : touched_) readers_[Index(id)].clear();
  touched_.clear();
  std::fill(unit_of_.begin(), unit_of_.end(), -1);
  inputs_.assign(units_->size(), {});
  for (size_t u = 0; u < units_->size(); ++u) {
    const PlanUnit& unit = (*units_)[u];
    for (const NodeId root : unit.roots) unit_of_[Index(root)] = static_cast<int>(u);
    ++mark_;
    for (const NodeId id : unit.covered) inside_mark_[Index(id)] = mark_;
    for (const NodeId id : unit.covered) {
      // A fused operator has the bounds of a column range as literals.
      const bool bounds = unit.covered.size() > 1 && dag_[id].op->fusion.use == ops::RowUse::kColumnRange;
      const std::vector<NodeId>& inputs = dag_[id].inputs;
      for (size_t i = 0; i < (bounds ? 1 : inputs.size()); ++i) {
        const NodeId input = inputs[i];
        if (input == kNoNode || inside_mark_[Index(input)] == mark_ || input_mark_[Index(input)] == mark_)
          continue;
        input_mark_[Index(input)] = mark_;
        inputs_[u].push_back(input);
        readers_[Index(input)].push_back(u);
        touched_.push_back(input);
      }
    }
  }
}

// Whether a member reads a value that another member reduces over all rows: that value is complete only when
// the pass has ended.
bool Stitcher::ReadsOwnReduction(const Group& group) const {
  return std::any_of(group.covered.begin(), group.covered.end(), [&](NodeId id) {
    return std::any_of(dag_[id].inputs.begin(), dag_[id].inputs.end(), [&](NodeId input) {
      return input != kNoNode && std::binary_search(group.covered.begin(), group.covered.end(), input) &&
             ReducesRows(dag_[input]);
    });
  });
}

// Whether a unit walks several rows tile by tile.
bool Stitcher::OpensRows(const PlanUnit& unit) const {
  return HeightOf(dag_, unit.roots[0]) > 1 &&
         std::all_of(unit.covered.begin(), unit.covered.end(),
                     [this](NodeId id) { return opens_[Index(id)] != 0; });
}

void Stitcher::AddGroups() {
  groups_.clear();
  group_of_.assign(units_->size(), -1);
  separate_.assign(units_->size(), {});
  for (size_t u = 0; u < units_->size(); ++u) {
    const PlanUnit& unit = (*units_)[u];
    if (unit.kind == FusionTemplate::kOuter) continue;
    Group group{.units = {u},
                .roots = unit.roots,
                .covered = unit.covered,
                .goes_by_rows = OpensRows(unit),
                .goes_by_cells = IsMultiAggregate(dag_, unit.roots),
                .kind = unit.kind,
                .height = HeightOf(dag_, unit.roots[0])};
    if (!group.goes_by_rows && !group.goes_by_cells) continue;
    std::sort(group.roots.begin(), group.roots.end());
    Cost(&group);
    separate_[u] = group.times;
    group_of_[u] = static_cast<int>(groups_.size());
    groups_.push_back(std::move(group));
  }
}

// Pairs of groups that both read rows (or, as aggregates, cells) of one matrix, or of which one reads the
// rows that the other computes.
void Stitcher::AddPairs() {
  pairs_.clear();
  std::map<NodeId, std::vector<size_t>> sharers;
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (const NodeId root : groups_[g].roots) sharers[root].push_back(g);
    for (const OperatorInput& input : groups_[g].inputs)
      if (input.by_rows || groups_[g].goes_by_cells) sharers[input.id].push_back(g);
  }
  for (const auto& [id, groups] : sharers)
    for (size_t a = 0; a < groups.size(); ++a)
      for (size_t b = a + 1; b < groups.size() && pairs_.size() < kMostPairs; ++b)
        AddPair(groups[a], groups[b]);
}

void Stitcher::AddPair(size_t a, size_t b) {
  if (a == b || !CanGoTogether(groups_[a], groups_[b])) return;
  const auto [known, fresh] = pairs_.try_emplace({std::min(a, b), std::max(a, b)});
  if (!fresh) return;
  Joined& joined = known->second;
  joined.group = Join(groups_[a], groups_[b]);
  const double least_bytes = joined.group.goes_by_cells ? 0 : kLeastSavedBytes;
  if (options_.by_cost && MostSavedBytes(groups_[a], groups_[b]) < least_bytes) return;
  if (ReadsOwnReduction(joined.group) || joined.group.roots.empty() ||
      joined.group.roots.size() > FusedOperator::kMaxRoots)
    return;
  Cost(&joined.group);
  const Counting counting = joined.group.counting();
  joined.saving = (groups_[a].times.*counting).total + (groups_[b].times.*counting).total -
                  (joined.group.times.*counting).total;
  const double saved_bytes = groups_[a].bytes + groups_[b].bytes - joined.group.bytes;
  joined.wanted = !options_.by_cost || (saved_bytes >= least_bytes && joined.saving > 0);
}

bool Stitcher::CanGoTogether(const Group& a, const Group& b) const {
  if (a.height != b.height) return false;
  return (a.goes_by_rows && b.goes_by_rows) ||
         (a.goes_by_cells && b.goes_by_cells && IsMultiAggregate(dag_, Union(a.roots, b.roots)));
}

// Bytes that merging two groups saves at most: an input of both is read once instead of twice, and a value
// that one computes for the other is not read, and not written either if nobody else reads it.
double Stitcher::MostSavedBytes(const Group& a, const Group& b) const {
  double bytes = 0;
  const auto is_input = [](const Group& group, NodeId id) {
    return std::any_of(group.inputs.begin(), group.inputs.end(),
                       [id](const OperatorInput& input) { return input.id == id; });
  };
  const auto covers = [](const Group& group, NodeId id) {
    return std::binary_search(group.covered.begin(), group.covered.end(), id);
  };
  for (const auto& [from, to] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    for (const OperatorInput& input : to->inputs)
      if (covers(*from, input.id)) bytes += dag_[input.id].bytes;
    for (const NodeId root : from->roots)
      if (covers(*to, root) || is_input(*to, root)) bytes += dag_[root].bytes;
  }
  for (const OperatorInput& input : a.inputs)
    if (is_input(b, input.id)) bytes += dag_[input.id].bytes;
  return bytes;
}

void Stitcher::Cost(Group* group) {
  OperatorWork work{.kind = group->kind, .roots = group->roots}, row_work{.kind = FusionTemplate::kRow};
  EntryWalk entries;
  ++mark_;
  for (const NodeId id : group->covered) inside_mark_[Index(id)] = mark_;
  group->inputs.clear();
  for (const NodeId id : group->covered) {
    AddNode(work_[Index(id)], &work);
    AddNode(row_work_[Index(id)], &row_work);
    entries.Add(dag_, id, std::binary_search(group->roots.begin(), group->roots.end(), id));
    for (size_t i = 0; i < dag_[id].inputs.size(); ++i) {
      const NodeId input = dag_[id].inputs[i];
      if (input == kNoNode || inside_mark_[Index(input)] == mark_ || !dag_[input].matrix) continue;
      if (input_mark_[Index(input)] != mark_) {
        input_mark_[Index(input)] = mark_;
        input_at_[Index(input)] = group->inputs.size();
        group->inputs.push_back({.id = input});
      }
      AddRead(dag_, id, i, &group->inputs[input_at_[Index(input)]]);
    }
  }
  group->first = group->covered.front();
  group->last = group->covered.back();
  group->bytes = 0;
  for (const OperatorInput& input : group->inputs) group->bytes += dag_[input.id].bytes;
  for (const NodeId root : group->roots) group->bytes += dag_[root].bytes;
  work.inputs = group->inputs;
  work.split = IsSplit(dag_, work, model_);
  if (group->goes_by_cells) {
    work.along_entries = entries.IsAlong();
    group->times.by_cells = TimeOf(dag_, work, model_);
  }
  if (!group->goes_by_rows) return;
  row_work.roots = std::move(work.roots);
  row_work.inputs = work.inputs;
  row_work.split = work.split;
  for (OperatorInput& input : group->inputs) input.by_cells = false;  // No pass over rows looks at CSR cells.
  group->times.by_rows = TimeOf(dag_, row_work, model_);
}

// Whether a result is still a result when these units are one: something outside reads it, or nothing reads
// it at all, as a printed value.
bool Stitcher::IsReadOutside(NodeId root, const std::vector<size_t>& members) const {
  const std::vector<size_t>& readers = readers_[Index(root)];
  return is_needed_[Index(root)] != 0 || readers.empty() ||
         std::any_of(readers.begin(), readers.end(),
                     [&](size_t reader) { return !Contains(members, reader); });
}

Stitcher::Group Stitcher::Join(const Group& a, const Group& b) const {
  Group both{
      .units = Union(a.units, b.units),
      .covered = Union(a.covered, b.covered),
      .goes_by_rows = a.goes_by_rows && b.goes_by_rows,
      .goes_by_cells = a.goes_by_cells && b.goes_by_cells && IsMultiAggregate(dag_, Union(a.roots, b.roots)),
      .height = a.height};
  const bool is_row = a.kind == FusionTemplate::kRow || b.kind == FusionTemplate::kRow;
  both.kind = is_row ? FusionTemplate::kRow : FusionTemplate::kCell;
  for (const NodeId root : Union(a.roots, b.roots))
    if (IsReadOutside(root, both.units)) both.roots.push_back(root);
  return both;
}

// The nodes of the scope that a node outside of it needs, directly or through other nodes outside.
const std::vector<NodeId>& Stitcher::NeedsOutside(NodeId id) {
  const auto [known, fresh] = needs_outside_.try_emplace(id);
  if (!fresh || in_scope_.empty()) return known->second;
  std::vector<NodeId> work = {id}, found;
  std::vector<uint8_t> seen(dag_.nodes.size(), 0);
  while (!work.empty()) {
    const NodeId next = work.back();
    work.pop_back();
    const Node& node = (*dag_.graph)[next];
    for (const std::vector<NodeId>* list : {&node.inputs, &node.after})
      for (const NodeId input : *list) {
        if (input == kNoNode || std::exchange(seen[Index(input)], 1) != 0) continue;
        (in_scope_[Index(input)] != 0 ? found : work).push_back(input);
      }
  }
  return needs_outside_[id] = std::move(found);
}

// Whether an input of the group needs, through other operators, a result of the group. Nodes stand behind
// their inputs, so nodes before the first member and before the first merged group cannot be on such a way.
bool Stitcher::HasCycle(const Group& group) {
  NodeId begin = group.first;
  for (const Group& other : groups_)
    if (other.units.size() > 1) begin = std::min(begin, other.first);
  std::vector<bool> seen(units_->size(), false);
  std::vector<size_t> work;
  const auto push = [&](NodeId id) {
    if (id == kNoNode || id < begin) return;
    if (const int unit = unit_of_[Index(id)]; unit >= 0) return work.push_back(static_cast<size_t>(unit));
    for (const NodeId need : NeedsOutside(id))
      if (const int unit = unit_of_[Index(need)]; unit >= 0) work.push_back(static_cast<size_t>(unit));
  };
  const auto is_member = [&](NodeId id) {
    return id != kNoNode && unit_of_[Index(id)] >= 0 &&
           Contains(group.units, static_cast<size_t>(unit_of_[Index(id)]));
  };
  // A member may read another one, but not by way of a node outside of the scope.
  const auto push_needs = [&](size_t unit, bool of_member) {
    for (const NodeId input : inputs_[unit])
      if (!of_member || !is_member(input)) push(input);
    for (const NodeId root : (*units_)[unit].roots)
      for (const NodeId earlier : (*dag_.graph)[root].after)
        if (!of_member || !is_member(earlier)) push(earlier);
  };
  for (const size_t member : group.units) push_needs(member, true);
  while (!work.empty()) {
    const size_t unit = work.back();
    work.pop_back();
    if (Contains(group.units, unit)) return true;
    if (seen[unit]) continue;
    seen[unit] = true;
    if (group_of_[unit] < 0) {
      push_needs(unit, false);
      continue;
    }
    // Who needs one member of a merged group waits for all of them.
    for (const size_t other : groups_[static_cast<size_t>(group_of_[unit])].units) {
      seen[other] = true;
      push_needs(other, false);
    }
  }
  return false;
}

bool Stitcher::CanRun(const Group& group) {
  std::vector<NodeId> key = group.roots;
  key.push_back(kNoNode);
  key.insert(key.end(), group.covered.begin(), group.covered.end());
  const auto [known, fresh] = can_run_.try_emplace(std::move(key), false);
  if (fresh) {
    const std::optional<BuiltOperator> built =
        BuildOperator(dag_, StitchKind(dag_, group.roots), group.roots, group.covered);
    known->second = built && (!model_.can_run || model_.can_run(built->fused).ok());
  }
  return known->second;
}

bool Stitcher::MergeBest() {
  auto best = pairs_.end();
  for (auto pair = pairs_.begin(); pair != pairs_.end(); ++pair)
    if (pair->second.wanted && (best == pairs_.end() || pair->second.saving > best->second.saving))
      best = pair;
  if (best == pairs_.end()) return false;
  const auto [a, b] = best->first;
  if (HasCycle(best->second.group) || (options_.wants && !options_.wants()) ||
      (asks_always_ && !CanRun(best->second.group))) {
    best->second.wanted = false;
    return true;
  }
  groups_[a] = std::move(best->second.group);
  groups_[b].units.clear();
  for (const size_t unit : groups_[a].units) group_of_[unit] = static_cast<int>(a);
  std::vector<size_t> neighbours;
  std::erase_if(pairs_, [&, a = a, b = b](const auto& entry) {
    const Pair& pair = entry.first;
    const bool of_a = pair.a == a || pair.a == b, of_b = pair.b == a || pair.b == b;
    if (of_a != of_b) neighbours.push_back(of_a ? pair.b : pair.a);
    return of_a || of_b;
  });
  for (const size_t other : neighbours) AddPair(a, other);
  return true;
}

// One fused operator may recompute a value that another one reads. The unit that was planned to write the
// value then has no reader and is dropped. Follows inputs from the sinks of the block down and removes the
// results that nothing reads from the groups.
void Stitcher::KeepWhatIsRead(std::vector<bool>* read_units) {
  std::vector<std::vector<NodeId>> read(groups_.size());
  std::vector<NodeId> work;
  for (size_t u = 0; u < units_->size(); ++u)
    for (const NodeId root : (*units_)[u].roots)
      if (readers_[Index(root)].empty() || is_needed_[Index(root)] != 0 || !(*dag_.graph)[root].after.empty())
        work.push_back(root);
  for (size_t u = 0; u < units_->size(); ++u)
    for (const NodeId root : (*units_)[u].roots) {
      const std::vector<NodeId>& after = (*dag_.graph)[root].after;
      work.insert(work.end(), after.begin(), after.end());
    }
  while (!work.empty()) {
    const NodeId id = work.back();
    work.pop_back();
    const int owner = unit_of_[Index(id)];
    if (owner < 0) {
      for (const NodeId need : NeedsOutside(id)) work.push_back(need);
      continue;
    }
    const auto unit = static_cast<size_t>(owner);
    const int group = group_of_[unit];
    if (group >= 0) read[static_cast<size_t>(group)].push_back(id);
    const size_t first = group < 0 ? unit : groups_[static_cast<size_t>(group)].units[0];
    if ((*read_units)[first]) continue;
    (*read_units)[first] = true;
    if (group < 0) {
      work.insert(work.end(), inputs_[unit].begin(), inputs_[unit].end());
      continue;
    }
    const Group& members = groups_[static_cast<size_t>(group)];
    for (const size_t member : members.units)
      for (const NodeId input : inputs_[member])
        if (!std::binary_search(members.covered.begin(), members.covered.end(), input)) work.push_back(input);
  }
  for (size_t g = 0; g < groups_.size(); ++g) {
    std::vector<NodeId> roots = std::move(read[g]);
    std::sort(roots.begin(), roots.end());
    roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
    if (groups_[g].units.size() < 2 || roots.empty() || roots.size() == groups_[g].roots.size()) continue;
    groups_[g].roots = std::move(roots);
    Cost(&groups_[g]);
  }
}

// nullopt if the executor refuses a stitch and has not been asked about each merge yet.
std::optional<StitchedUnits> Stitcher::Result() {
  StitchedUnits result;
  result.unread.assign(units_->size(), false);
  if (std::none_of(groups_.begin(), groups_.end(), [](const Group& group) { return group.units.size() > 1; }))
    return result;
  std::vector<bool> read(units_->size(), false);
  KeepWhatIsRead(&read);
  // If the executor refuses a stitch, its units stay as they were, and so must the units that they read.
  const bool all_run = std::all_of(groups_.begin(), groups_.end(), [&](const Group& group) {
    return group.units.size() < 2 || !read[group.units[0]] || CanRun(group);
  });
  if (!all_run && !asks_always_) return std::nullopt;
  for (const Group& group : groups_) {
    if (group.units.empty()) continue;
    const bool is_read = read[group.units[0]];
    if (!is_read && all_run)
      for (const size_t unit : group.units) result.unread[unit] = true;
    if (group.units.size() < 2 || !is_read || !CanRun(group)) continue;
    const Counting counting = group.counting();
    Stitch stitch{group.units, group.roots, group.covered, {}, group.times.*counting};
    for (const size_t unit : group.units) stitch.separate_ns += (separate_[unit].*counting).total;
    for (const OperatorInput& input : group.inputs) stitch.inputs.push_back(input.id);
    std::sort(stitch.inputs.begin(), stitch.inputs.end());
    result.stitches.push_back(std::move(stitch));
  }
  for (size_t u = 0; all_run && u < units_->size(); ++u)
    if (group_of_[u] < 0 && !read[u]) result.unread[u] = true;
  return result;
}

}  // namespace heddle::compiler::fusion
