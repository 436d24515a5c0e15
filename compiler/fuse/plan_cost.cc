// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/plan_cost.h"

#include <algorithm>
#include <utility>

#include "compiler/fuse/build_operator.h"
#include "core/values/panels.h"

namespace heddle::compiler::fusion {

struct PlanCost::Open {
  OperatorWork work;
  uint64_t id = 0;  // Its number among all operators.
  std::vector<OperatorInput> inputs;
  std::vector<NodeId>
      needed;  // Nodes of the partition whose values must be stored: it reads them, or others do.
  std::vector<NodeId> covered;
  double least_compute = 0;
  bool sparse = false;  // Some value that it computes or reads is CSR.
  EntryWalk entries;
  bool undecided = false;  // Some node's entry depends on an unknown point, so its costs are lower bounds.

  // Starts an operator, reusing the memory of the lists.
  void Begin(uint64_t number) {
    std::vector<NodeId> roots = std::move(work.roots);
    roots.clear();
    inputs.clear();
    needed.clear();
    covered.clear();
    work = {.roots = std::move(roots)};
    id = number;
    least_compute = 0;
    sparse = undecided = false;
    entries = {};
  }
};

namespace {

// The template that an operator with this entry at its root is costed as. A single node is not a Row
// operator: it runs as a plain operator, which may walk entries.
FusionTemplate KindOf(const Entry* entry) {
  if (entry == nullptr || (entry->References() == 0 && entry->kind == FusionTemplate::kRow))
    return FusionTemplate::kCell;
  return entry->kind;
}

}  // namespace

EntryPicker::EntryPicker(const Dag& dag, const Memo& memo, EntryChoice choice, uint64_t seed)
    : memo_(memo), choice_(choice), seed_(seed), permanent_(memo.groups.size(), 0) {
  if (choice == EntryChoice::kNoRedundancy)
    for (NodeId id = 0; id < dag.size(); ++id)
      for (size_t i = 0; i < memo[id].size(); ++i)
        for (NodeId ref : memo[id][i].refs)
          if (ref != kNoNode && dag[ref].consumers.size() > 1)
            permanent_[static_cast<size_t>(id)] |= uint64_t{1} << i;
  blocked_ = permanent_;
}

void EntryPicker::Block(NodeId consumer, NodeId target) {
  for (size_t i = 0; i < memo_[consumer].size(); ++i)
    if (memo_[consumer][i].Refers(target)) blocked_[static_cast<size_t>(consumer)] |= uint64_t{1} << i;
  changed_.push_back(consumer);
}

void EntryPicker::UnblockAll() {
  for (NodeId id : changed_) blocked_[static_cast<size_t>(id)] = permanent_[static_cast<size_t>(id)];
  changed_.clear();
}

int EntryPicker::RandomRank(NodeId id, size_t entry) const {
  uint64_t x = seed_ + 0x9e3779b97f4a7c15u * (static_cast<uint64_t>(id) * 64 + entry + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return static_cast<int>((x ^ (x >> 31)) & 0xffffff);
}

bool EntryPicker::MustRead(NodeId id, NodeId input) const {
  const std::vector<Entry>& group = memo_[id];
  for (size_t i = 0; i < group.size(); ++i)
    if (!IsBlocked(id, i) && !group[i].JoinsOperators() && group[i].Refers(input)) return false;
  return true;
}

const Entry* EntryPicker::PickRoot(NodeId id) const {
  const Entry* best = nullptr;
  int best_rank = 0;
  const std::vector<Entry>& group = memo_[id];
  for (size_t i = 0; i < group.size(); ++i) {
    if (!group[i].valid || group[i].JoinsOperators() || IsBlocked(id, i)) continue;
    // An entry without references is the plain operator: any other goes first.
    const int references = group[i].References();
    const int rank = choice_ == EntryChoice::kRandom
                         ? RandomRank(id, i)
                         : (references == 0 ? 1000 : 0) + 10 * static_cast<int>(group[i].kind) - references;
    if (best == nullptr || rank < best_rank) {
      best = &group[i];
      best_rank = rank;
    }
  }
  return best;
}

const Entry* EntryPicker::PickInside(NodeId id, FusionTemplate kind) const {
  const Entry* best = nullptr;
  int best_rank = 0;
  const std::vector<Entry>& group = memo_[id];
  for (size_t i = 0; i < group.size(); ++i) {
    if (IsBlocked(id, i) || !group[i].open || !IsCompatible(kind, group[i].kind)) continue;
    const int rank = choice_ == EntryChoice::kRandom
                         ? RandomRank(id, i)
                         : 7 - (group[i].kind == kind ? 4 : 0) - group[i].References();
    if (best == nullptr || rank < best_rank) {
      best = &group[i];
      best_rank = rank;
    }
  }
  return best;
}

PlanCost::PlanCost(const Dag& dag, const Memo& memo, const Partition& partition, const CostModel& model,
                   EntryChoice choice)
    : dag_(dag), partition_(partition), model_(model), picker_(dag, memo, choice, 0) {
  const size_t count = partition.nodes.size();
  local_.assign(dag.nodes.size(), -1);
  for (size_t i = 0; i < count; ++i) local_[static_cast<size_t>(partition.nodes[i])] = static_cast<int>(i);
  for (NodeId id : partition.nodes) work_.push_back(WorkOf(dag, id));
  external_.assign(count, 0);
  for (NodeId id : partition.external) external_[Local(id)] = 1;
  materialized_.assign(count, 0);
  undecided_.assign(count, 0);
  computed_.assign(count, 0);
  read_.assign(dag.nodes.size(), 0);
  copied_.assign(dag.nodes.size(), 0);
  inside_.assign(count, 0);
  input_of_.assign(dag.nodes.size(), 0);
  input_at_.assign(dag.nodes.size(), 0);
  PrepareBound();
  PrepareStitches(memo);
}

PlanCost::~PlanCost() = default;

void PlanCost::Apply(const Assignment& assignment) {
  picker_.UnblockAll();
  for (size_t i = 0; i < assignment.size(); ++i)
    if (assignment[i] != 0) picker_.Block(partition_.points[i].consumer, partition_.points[i].target);
  ++epoch_;
  total_ = 0;
  units_.clear();
  unit_ns_.clear();
}

double PlanCost::Cost(const Assignment& assignment, double stop_at) {
  Apply(assignment);
  // Stitches are found when all operators are known, so the sum before says nothing about `stop_at`.
  stop_at_ = stitched_ ? std::numeric_limits<double>::infinity() : stop_at;
  for (NodeId root : partition_.roots) {
    if (total_ >= stop_at_) return std::numeric_limits<double>::infinity();
    Materialize(root);
  }
  if (stitched_ && total_ >= stop_at && TimeOutsideStitches() >= stop_at)
    return std::numeric_limits<double>::infinity();
  if (stitched_) total_ -= SavedByStitches();
  return total_ >= stop_at ? std::numeric_limits<double>::infinity() : total_;
}

std::vector<PlannedOperator> PlanCost::Operators(const Assignment& assignment) {
  std::vector<PlannedOperator> operators;
  trace_ = &operators;
  (void)Cost(assignment);
  trace_ = nullptr;
  return operators;
}

void PlanCost::Materialize(NodeId id) {
  if (materialized_[Local(id)] == epoch_ || total_ >= stop_at_) return;
  if (depth_ == opens_.size()) opens_.push_back(std::make_unique<Open>());
  Open& open = *opens_[depth_++];
  open.Begin(++operators_);
  const Entry* entry = picker_.PickRoot(id);
  open.work.kind = KindOf(entry);
  open.work.roots.push_back(id);
  materialized_[Local(id)] = epoch_;
  AddNode(id, entry, open.work.kind, &open);
  if (stitched_) LeaveOutComputedInputs(&open);
  // After the operator is complete, because `inside_` holds the nodes of one operator at a time.
  for (NodeId needed : open.needed) Materialize(needed);
  Finish(&open);
  --depth_;
}

// If one node of an operator reads a value that another node of it computes inside, the operator does not
// read the value from memory (build_operator.h). Costs without stitches ignore this, because their bounds
// count a stored target as read whatever other consumers do.
void PlanCost::LeaveOutComputedInputs(Open* open) {
  const auto is_inside = [&](NodeId id) { return Inside(id) && inside_[Local(id)] == open->id; };
  std::erase_if(open->inputs, [&](const OperatorInput& input) { return is_inside(input.id); });
  std::erase_if(open->needed, [&](NodeId id) { return is_inside(id) && external_[Local(id)] == 0; });
}

void PlanCost::AddNode(NodeId id, const Entry* entry, FusionTemplate kind, Open* open) {
  fusion::AddNode(work_[Local(id)], &open->work);
  open->covered.push_back(id);
  open->sparse |= dag_[id].sparse;
  open->entries.Add(dag_, id, id == open->work.roots[0]);
  computed_[Local(id)] = epoch_;
  open->least_compute += least_compute_[Local(id)];
  const bool decided = IsDecided(id);
  if (!decided) open->undecided = true;
  const std::vector<NodeId>& inputs = dag_[id].inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const NodeId input = inputs[i];
    ++steps_;
    if (input == kNoNode || (!decided && !picker_.MustRead(id, input))) continue;
    if (decided && entry != nullptr && i < kMaxArity && entry->refs[i] == input) {
      uint64_t& inside = inside_[Local(input)];
      if (inside == open->id) continue;
      inside = open->id;
      AddNode(input, picker_.PickInside(input, kind), kind, open);
      if (external_[Local(input)] != 0) open->needed.push_back(input);
      continue;
    }
    if (Inside(input)) open->needed.push_back(input);
    open->sparse |= dag_[input].sparse;
    if (!dag_[input].matrix) continue;
    const auto node = static_cast<size_t>(input);
    if (input_of_[node] != open->id) {
      input_of_[node] = open->id;
      input_at_[node] = open->inputs.size();
      open->inputs.push_back({.id = input});
    }
    AddRead(dag_, id, i, &open->inputs[input_at_[node]]);
  }
}

void PlanCost::Finish(Open* open) {
  if (open->undecided) return FinishUndecided(*open);
  open->work.along_entries = open->entries.IsAlong();
  open->work.inputs = open->inputs;
  open->work.split = IsSplit(dag_, open->work, model_);
  for (OperatorInput& input : open->inputs) {
    read_[static_cast<size_t>(input.id)] = epoch_;
    // If several operators compute the node that the copies are for, the first of them pays.
    if (open->work.split && input.copied)
      input.copied = std::exchange(copied_[static_cast<size_t>(input.id)], epoch_) != epoch_;
  }
  OperatorTime time = TimeOf(dag_, open->work, model_);
  if (!CanRun(open)) time.total += kInfeasibleNs;
  total_ += time.total;
  if (trace_ == nullptr && !stitched_) return;
  std::sort(open->covered.begin(), open->covered.end());
  open->covered.erase(std::unique(open->covered.begin(), open->covered.end()), open->covered.end());
  if (stitched_) {
    units_.push_back({open->work.roots, open->work.kind, open->covered});
    unit_ns_.push_back(time.total);
  }
  if (trace_ == nullptr) return;
  std::vector<NodeId> inputs;
  for (const OperatorInput& input : open->inputs) inputs.push_back(input.id);
  std::sort(inputs.begin(), inputs.end());
  open->work.inputs = {};
  trace_->push_back({open->work, open->covered, std::move(inputs), time});
}

// Asks the executor, and remembers the answer, only about operators with CSR values or long rows: it runs all
// others.
bool PlanCost::CanRun(Open* open) {
  const bool doubtful = open->sparse || std::any_of(open->inputs.begin(), open->inputs.end(),
                                                    [this](const OperatorInput& input) {
                                                      return dag_[input.id].columns > kColumnChunk;
                                                    });
  if (!model_.can_run || open->covered.size() < 2 || !doubtful) return true;
  std::sort(open->covered.begin(), open->covered.end());
  std::vector<NodeId> key = open->work.roots;
  key.push_back(kNoNode);
  key.insert(key.end(), open->covered.begin(), open->covered.end());
  const auto [known, fresh] = can_run_.try_emplace(std::move(key), false);
  if (fresh) {
    const std::optional<BuiltOperator> built =
        BuildOperator(dag_, open->work.kind, open->work.roots, open->covered);
    known->second = built && model_.can_run(built->fused).ok();
  }
  return known->second;
}

void PlanCost::PrepareBound() {
  const ops::MachineConstants& constants = model_.constants;
  const size_t count = partition_.nodes.size();
  // By node, the smallest share of its cells that any operator could compute: less than 1 if some operator
  // that may hold the node walks entries of a CSR matrix.
  std::vector<double> share(count, 1);
  for (size_t i = count; i-- > 0;) {
    const NodeId id = partition_.nodes[i];
    const NodeId walked = WalkedValue(dag_, id);
    if (walked != kNoNode && dag_[walked].sparse) share[i] = std::min(share[i], dag_[walked].sparsity);
    for (NodeId input : dag_[id].inputs)
      if (input != kNoNode && Inside(input)) share[Local(input)] = std::min(share[Local(input)], share[i]);
  }
  const auto read_share = [&](NodeId id) {
    double least = 1;
    if (dag_[id].sparse) return least;
    for (NodeId consumer : dag_[id].consumers)
      if (Inside(consumer)) least = std::min(least, share[Local(consumer)]);
    return least;
  };
  for (size_t i = 0; i < count; ++i) {
    const double along = std::min(work_[i].along * share[i], work_[i].along - work_[i].elsewhere);
    least_compute_.push_back((along + work_[i].fixed) / constants.work_per_ns);
    bound_compute_ += least_compute_.back();
  }
  for (NodeId input : partition_.inputs) {
    input_read_.push_back(dag_[input].bytes * read_share(input) / constants.read_bytes_per_ns);
    bound_read_ += input_read_.back();
  }
  if (model_.ranks > 1) bound_factor_ = 1.0 / model_.ranks;
  counted_.assign(count, 0);
  target_write_.assign(count, 0);
  target_read_.assign(count, 0);
  for (size_t i = 0; i < count; ++i) {
    const NodeId id = partition_.nodes[i];
    // Every rank starts the operator, so that part is not divided among them.
    target_write_[i] = dag_[id].bytes / constants.write_bytes_per_ns * bound_factor_ + constants.operator_ns;
    target_read_[i] = dag_[id].bytes * read_share(id) / constants.read_bytes_per_ns;
  }
  for (const std::vector<NodeId>* list : {&partition_.roots, &partition_.external})
    for (NodeId id : *list) {
      bound_fixed_ += target_write_[Local(id)];
      counted_[Local(id)] = 1;
    }
}

void PlanCost::FinishUndecided(const Open& open) {
  double read = 0;
  for (const OperatorInput& input : open.inputs) {
    read_[static_cast<size_t>(input.id)] = epoch_;
    if (Inside(input.id)) {
      read += target_read_[Local(input.id)];
      continue;
    }
    const auto at = std::lower_bound(partition_.inputs.begin(), partition_.inputs.end(), input.id) -
                    partition_.inputs.begin();
    read += input_read_[static_cast<size_t>(at)];
  }
  for (NodeId root : open.work.roots) open_fixed_ += target_write_[Local(root)];
  open_read_ += read;
  open_compute_ += open.least_compute;
  open_largest_ += std::max(read, open.least_compute);
}

double PlanCost::PartialBound(const Assignment& assignment, const Assignment& known) {
  if (stitched_) {
    if (std::all_of(known.begin(), known.end(), [](uint8_t bit) { return bit != 0; }))
      return Cost(assignment);
    Assignment ones = assignment;
    for (size_t i = 0; i < ones.size(); ++i) ones[i] &= known[i];
    return StitchedBound(ones);
  }
  picker_.UnblockAll();
  for (size_t i = 0; i < assignment.size(); ++i) {
    const Point& point = partition_.points[i];
    if (known[i] == 0) ++undecided_[Local(point.consumer)];
    if (known[i] != 0 && assignment[i] != 0) picker_.Block(point.consumer, point.target);
  }
  ++epoch_;
  total_ = open_fixed_ = open_read_ = open_compute_ = open_largest_ = 0;
  stop_at_ = std::numeric_limits<double>::infinity();
  for (const std::vector<NodeId>* list : {&partition_.roots, &partition_.external})
    for (NodeId id : *list) Materialize(id);
  // Nodes and inputs that no operator so far accounts for are computed, read and written at least once.
  double compute = open_compute_, read = open_read_;
  for (size_t i = 0; i < assignment.size(); ++i) {
    const NodeId target = partition_.points[i].target;
    if (known[i] == 0 || assignment[i] == 0 || materialized_[Local(target)] == epoch_) continue;
    materialized_[Local(target)] = epoch_;
    open_fixed_ += target_write_[Local(target)];
    if (read_[static_cast<size_t>(target)] != epoch_) read += target_read_[Local(target)];
  }
  for (size_t i = 0; i < partition_.nodes.size(); ++i)
    if (computed_[i] != epoch_) compute += least_compute_[i];
  for (size_t i = 0; i < partition_.inputs.size(); ++i)
    if (read_[static_cast<size_t>(partition_.inputs[i])] != epoch_) read += input_read_[i];
  std::fill(undecided_.begin(), undecided_.end(), 0);
  return total_ + open_fixed_ + bound_factor_ * std::max({open_largest_, read, compute});
}

double PlanCost::LowerBound(const Assignment& assignment) {
  if (stitched_) return StitchedBound(assignment);
  ++epoch_;
  double read = bound_read_, fixed = bound_fixed_;
  for (size_t i = 0; i < assignment.size(); ++i) {
    if (assignment[i] == 0) continue;
    const size_t target = Local(partition_.points[i].target);
    if (materialized_[target] == epoch_) continue;
    materialized_[target] = epoch_;
    read += target_read_[target];
    if (counted_[target] == 0) fixed += target_write_[target];
  }
  return bound_factor_ * std::max(read, bound_compute_) + fixed;
}

}  // namespace heddle::compiler::fusion
