// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/stitch.h"

#include <algorithm>
#include <utility>

#include "compiler/fuse/build_operator.h"
#include "compiler/fuse/template.h"
#include "core/programs/fused_operator.h"

namespace heddle::compiler::fusion {
namespace {

// Pairs that are looked at: in blocks where one matrix has so many readers the others stay alone.
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

}  // namespace

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
  if (scope != nullptr) {
    in_scope_.assign(count, 0);
    for (const NodeId id : *scope) in_scope_[Index(id)] = 1;
  }
  for (NodeId id = 0; id < dag.size(); ++id) {
    if (scope != nullptr && in_scope_[Index(id)] == 0) continue;
    opens_[Index(id)] = kStitchTemplate.open(dag, id);
    if (opens_[Index(id)] != 0) work_[Index(id)] = WorkOf(dag, id, model.constants);
    const std::vector<NodeId>& consumers = dag[id].consumers;
    is_needed_[Index(id)] =
        scope != nullptr &&
        std::any_of(consumers.begin(), consumers.end(), [&](NodeId to) { return in_scope_[Index(to)] == 0; });
  }
}

StitchedUnits Stitcher::Join(const std::vector<PlanUnit>& units) {
  units_ = &units;
  FindReaders();
  // To ask the executor takes longer than all the rest, and it seldom refuses: it is asked about what all
  // merges come to, and about each merge only where it refuses one of these.
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

// What is reduced over all rows is there when the pass has ended, so no member reads it.
bool Stitcher::ReadsOwnReduction(const Group& group) const {
  return std::any_of(group.covered.begin(), group.covered.end(), [&](NodeId id) {
    return std::any_of(dag_[id].inputs.begin(), dag_[id].inputs.end(), [&](NodeId input) {
      return input != kNoNode && std::binary_search(group.covered.begin(), group.covered.end(), input) &&
             ReducesRows(dag_[input]);
    });
  });
}

// The rows that a unit walks tile by tile; 0 where it walks none.
int64_t Stitcher::HeightOfRows(const PlanUnit& unit) const {
  if (unit.kind == FusionTemplate::kOuter) return 0;
  const bool opens = std::all_of(unit.covered.begin(), unit.covered.end(),
                                 [this](NodeId id) { return opens_[Index(id)] != 0; });
  return opens ? HeightOf(dag_, unit.roots[0]) : 0;
}

void Stitcher::AddGroups() {
  groups_.clear();
  group_of_.assign(units_->size(), -1);
  alone_.assign(units_->size(), 0);
  for (size_t u = 0; u < units_->size(); ++u) {
    const PlanUnit& unit = (*units_)[u];
    const int64_t height = HeightOfRows(unit);
    if (height <= 1) continue;
    Group group{.units = {u}, .roots = unit.roots, .covered = unit.covered, .height = height};
    std::sort(group.roots.begin(), group.roots.end());
    Cost(&group);
    alone_[u] = group.time.total;
    group_of_[u] = static_cast<int>(groups_.size());
    groups_.push_back(std::move(group));
  }
}

// Both read rows of a matrix, or one those that the other makes.
void Stitcher::AddPairs() {
  pairs_.clear();
  std::map<NodeId, std::vector<size_t>> sharers;
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (const NodeId root : groups_[g].roots) sharers[root].push_back(g);
    for (const OperatorInput& input : groups_[g].inputs)
      if (input.by_rows) sharers[input.id].push_back(g);
  }
  for (const auto& [id, groups] : sharers)
    for (size_t a = 0; a < groups.size(); ++a)
      for (size_t b = a + 1; b < groups.size() && pairs_.size() < kMostPairs; ++b)
        AddPair(groups[a], groups[b]);
}

void Stitcher::AddPair(size_t a, size_t b) {
  if (a == b || groups_[a].height != groups_[b].height) return;
  const auto [known, fresh] = pairs_.try_emplace({std::min(a, b), std::max(a, b)});
  if (!fresh) return;
  Joined& joined = known->second;
  if (options_.by_cost && MostSavedBytes(groups_[a], groups_[b]) < kLeastSavedBytes) return;
  joined.group = Join(groups_[a], groups_[b]);
  if (ReadsOwnReduction(joined.group) || joined.group.roots.empty() ||
      joined.group.roots.size() > FusedOperator::kMaxRoots)
    return;
  Cost(&joined.group);
  joined.saving = groups_[a].time.total + groups_[b].time.total - joined.group.time.total;
  const double saved_bytes = groups_[a].bytes + groups_[b].bytes - joined.group.bytes;
  joined.wanted = !options_.by_cost || (saved_bytes >= kLeastSavedBytes && joined.saving > 0);
}

// What both read is read once, and what one makes for the other is neither read nor, perhaps, written.
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
      if (covers(*to, root) || is_input(*to, root)) bytes += WriteBytes(dag_, root, model_.constants);
  }
  for (const OperatorInput& input : a.inputs)
    if (is_input(b, input.id)) bytes += dag_[input.id].bytes;
  return bytes;
}

void Stitcher::Cost(Group* group) {
  OperatorWork work{.kind = FusionTemplate::kRow, .roots = group->roots};
  ++mark_;
  for (const NodeId id : group->covered) inside_mark_[Index(id)] = mark_;
  group->inputs.clear();
  for (const NodeId id : group->covered) {
    AddNode(work_[Index(id)], &work);
    for (size_t i = 0; i < dag_[id].inputs.size(); ++i) {
      const NodeId input = dag_[id].inputs[i];
      if (input == kNoNode || inside_mark_[Index(input)] == mark_ || !dag_[input].matrix) continue;
      if (input_mark_[Index(input)] != mark_) {
        input_mark_[Index(input)] = mark_;
        input_at_[Index(input)] = group->inputs.size();
        group->inputs.push_back({.id = input});
      }
      OperatorInput& read = group->inputs[input_at_[Index(input)]];
      AddRead(dag_, id, i, &read);
      read.by_cells = false;  // Where CSR cells are looked at, there is no stitch.
    }
  }
  group->first = group->covered.front();
  group->last = group->covered.back();
  group->bytes = 0;
  for (const OperatorInput& input : group->inputs) group->bytes += dag_[input.id].bytes;
  for (const NodeId root : group->roots) group->bytes += WriteBytes(dag_, root, model_.constants);
  work.inputs = group->inputs;
  work.split = IsSplit(dag_, work, model_);
  group->time = TimeOf(dag_, work, model_);
}

// A value that some operator outside reads, or that nothing reads because it is there for its own sake.
bool Stitcher::IsReadOutside(NodeId root, const std::vector<size_t>& members) const {
  const std::vector<size_t>& readers = readers_[Index(root)];
  return is_needed_[Index(root)] != 0 || readers.empty() ||
         std::any_of(readers.begin(), readers.end(),
                     [&](size_t reader) { return !Contains(members, reader); });
}

Stitcher::Group Stitcher::Join(const Group& a, const Group& b) const {
  Group both{.units = Union(a.units, b.units), .covered = Union(a.covered, b.covered), .height = a.height};
  for (const NodeId root : Union(a.roots, b.roots))
    if (IsReadOutside(root, both.units)) both.roots.push_back(root);
  return both;
}

// Nodes of the scope that a node outside of it needs, as far as ways outside of it tell.
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

// Is there a way from what the members read back to a member? Nodes stand behind what they need, so what is
// before the first member and before all that is one already is no part of such a way.
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
    // Of what is one already all members are needed.
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
        BuildOperator(dag_, StitchKind(group.roots), group.roots, group.covered);
    known->second = built && (!model_.can_run || model_.can_run(built->fused));
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

// A member may compute what another member reads: where a third unit was to make it, that is read by nobody
// any more. Follows what is needed from the sinks down and keeps the results that are.
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

// None where the executor is to be asked about each merge.
std::optional<StitchedUnits> Stitcher::Result() {
  StitchedUnits result;
  result.unread.assign(units_->size(), false);
  if (std::none_of(groups_.begin(), groups_.end(), [](const Group& group) { return group.units.size() > 1; }))
    return result;
  std::vector<bool> read(units_->size(), false);
  KeepWhatIsRead(&read);
  // Where a result less is what the executor cannot run, units stay as they were, and so does what they read.
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
    Stitch stitch{group.units, group.roots, group.covered, {}, group.time, -group.time.total};
    for (const size_t unit : group.units) stitch.saved += alone_[unit];
    for (const OperatorInput& input : group.inputs) stitch.inputs.push_back(input.id);
    std::sort(stitch.inputs.begin(), stitch.inputs.end());
    result.stitches.push_back(std::move(stitch));
  }
  for (size_t u = 0; all_run && u < units_->size(); ++u)
    if (group_of_[u] < 0 && !read[u]) result.unread[u] = true;
  return result;
}

}  // namespace heddle::compiler::fusion
