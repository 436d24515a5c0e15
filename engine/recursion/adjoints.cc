// SPDX-License-Identifier: Apache-2.0
#include "engine/recursion/adjoints.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/memory/counted_heap.h"
#include "engine/recursion/rows.h"
#include "engine/recursion/texts.h"
#include "ops/base/parallel.h"
#include "ops/recursion/adjoint/adjoint_total.h"
#include "ops/recursion/recursive_operator.h"
#include "ops/recursion/structure/root_groups.h"

namespace heddle::engine {
namespace {

using Attributes = ops::RecursiveAttributes;

// SavedGroups values take at most this part of the memory budget: results, adjoints and what bodies give take
// several times as much (docs/gradient.md).
constexpr int64_t kPartOfMemory = 8;
// Groups of each thread that run before their sums are added up.
constexpr int64_t kGroupsOfThread = 4;

enum Input { kGroups, kNumber, kGiven };
const Matrix& InputOf(const ops::KernelCall& call, Input input) {
  const size_t first = call.node.Is(ops::kRecursiveBackward) ? call.inputs.size() - ops::kBackwardInputs : 0;
  return call.inputs[first + input]->matrix();
}

int64_t NumberOf(const ops::KernelCall& call, int64_t row) {
  return static_cast<int64_t>(InputOf(call, kGroups).At(row, 0));
}

// Runs groups side by side, each on one thread, as long as there is one for every thread. The remaining
// groups run one after the other, with the threads inside their operators.
Status ForGroups(int64_t begin, int64_t end, const std::function<Status(int64_t group)>& run) {
  std::vector<Status> failed(static_cast<size_t>(end - begin));
  const auto run_one = [&](int64_t group) {
    failed[static_cast<size_t>(group - begin)] = WithinMemory("variables", [&] { return run(group); });
  };
  const int64_t threads = ops::ParallelThreads();
  const int64_t together = threads > 1 ? (end - begin) / threads * threads : 0;
  ops::ParallelFor(together, 1, [&](int64_t first, int64_t last) {
    const ops::SerialLoops serial;
    for (int64_t i = first; i < last; ++i) run_one(begin + i);
  });
  for (int64_t group = begin + together; group < end; ++group) run_one(group);
  for (Status& status : failed) HEDDLE_RETURN_IF_ERROR(std::move(status));
  return OkStatus();
}

}  // namespace

struct RecursionAdjoints::SavedGroups {
  std::mutex mutex;
  int64_t slots = 0;                                                          // So far.
  std::map<int64_t, std::map<int64_t, std::shared_ptr<const Group>>> groups;  // By place and number.
};

struct RecursionAdjoints::Setting {
  const Function* function = nullptr;
  VariableTable inputs;
  BodySetting bodies;
  std::map<std::string, Value> parameters;
  int64_t memory = -1;  // Bytes that a group may save; negative: any.
};

RecursionAdjoints::RecursionAdjoints(const SessionOptions& options, const RecursionBodies& bodies,
                                     const ops::KernelSource& kernels)
    : options_(options), bodies_(bodies), kernels_(kernels), saved_(std::make_shared<SavedGroups>()) {}

RecursionAdjoints::~RecursionAdjoints() = default;

RecursionAdjoints::Slot::Slot(std::shared_ptr<SavedGroups> saved, int64_t number)
    : saved_(std::move(saved)), number_(number) {}

RecursionAdjoints::Slot::~Slot() {
  std::map<int64_t, std::shared_ptr<const Group>> groups;  // Freed outside of the lock.
  std::lock_guard lock(saved_->mutex);
  const auto found = saved_->groups.find(number_);
  if (found == saved_->groups.end()) return;
  groups.swap(found->second);
  saved_->groups.erase(found);
}

std::shared_ptr<const RecursionAdjoints::Slot> RecursionAdjoints::NewSlot() {
  std::lock_guard lock(saved_->mutex);
  const int64_t number = ++saved_->slots;
  saved_->groups[number];
  return std::make_shared<const Slot>(saved_, number);
}

Result<RecursionAdjoints::Setting> RecursionAdjoints::SettingOf(const ops::KernelCall& call,
                                                                const Function& function,
                                                                const std::vector<std::string>& names,
                                                                size_t first_input) const {
  Setting setting{.function = &function, .inputs = bodies_.InputsOf(names, call, first_input)};
  setting.bodies = bodies_.SettingOf(function, setting.inputs);
  for (const auto& [name, known] : setting.bodies.context.parameters) {
    Value& value = setting.parameters[name] = setting.inputs.Find(name)->value;
    if (!known.info.IsMatrix() || known.info.format != Format::kDense || !value.matrix().IsSparse()) continue;
    HEDDLE_ASSIGN_OR_RETURN(Matrix dense, ToDense(value.matrix()));
    value = std::move(dense);
  }
  const int64_t groups = std::max<int64_t>(InputOf(call, kGroups).rows(), 1);
  if (options_.memory_bytes != 0) setting.memory = options_.memory_bytes / kPartOfMemory / groups;
  return setting;
}

// nullptr where the interpreter is to run.
Result<std::shared_ptr<const RecursionAdjoints::Group>> RecursionAdjoints::Evaluate(
    const Setting& setting, std::vector<int64_t> roots, ops::KernelContext& context) const {
  const std::shared_ptr<const Group> none;
  auto group = std::make_shared<Group>();
  HEDDLE_ASSIGN_OR_RETURN(group->structure, bodies_.StructureOf(*setting.function, roots, setting.inputs));
  if (group->structure == nullptr) return none;
  group->roots = std::move(roots);
  int64_t memory = setting.memory;
  const auto adjoint_of = [&](const ops::Linearized::Class& node_class,
                              const std::vector<ValueInfo>& children, bool saves) {
    return bodies_.AdjointOf(*setting.function, setting.bodies, node_class, children, saves);
  };
  // Classes come in the order of their first batches. A class whose values do not fit any more saves nothing.
  const ops::FindAdjoint find =
      [&](const ops::Linearized::Class& node_class,
          const std::vector<ValueInfo>& children) -> Result<std::shared_ptr<const ops::RecursiveAdjoint>> {
    HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const ops::RecursiveAdjoint> adjoint,
                            adjoint_of(node_class, children, /*saves=*/true));
    if (adjoint == nullptr || memory < 0) return adjoint;
    const int64_t bytes = BytesOfRows(adjoint->saved) * (node_class.end - node_class.begin);
    if (bytes > memory) return adjoint_of(node_class, children, /*saves=*/false);
    memory -= bytes;
    return adjoint;
  };
  HEDDLE_ASSIGN_OR_RETURN(
      std::optional<ops::SavedNodes> nodes,
      ops::EvaluateForward(*group->structure, find, setting.parameters, kernels_, context, bodies_.cache()));
  if (!nodes) {
    bodies_.ReportInterpreted(*setting.function, "results differ in size from node to node (C7)");
    return none;
  }
  group->nodes = *std::move(nodes);
  bodies_.CountEvaluation(
      TextOfEvaluation("gradient of " + setting.function->name, group->nodes.results.parts));
  return std::shared_ptr<const Group>(std::move(group));
}

Result<Matrix> RecursionAdjoints::RunForward(const ops::KernelCall& call, const Function& function) const {
  const std::vector<std::string> names = bodies_.RecognitionOf(function).recursion.Inputs(function);
  HEDDLE_ASSIGN_OR_RETURN(const Setting setting, SettingOf(call, function, names, ops::kForwardInputs));
  const Matrix& rows = InputOf(call, kGroups);
  std::vector<std::shared_ptr<const Group>> groups(static_cast<size_t>(rows.rows()));
  const Status status = ForGroups(0, rows.rows(), [&](int64_t row) -> Status {
    HEDDLE_ASSIGN_OR_RETURN(groups[static_cast<size_t>(row)],
                            Evaluate(setting, ops::RootsOf(rows, row), call.context));
    return OkStatus();
  });
  Result<RecursionParts> parts = RecursionParts(std::vector<RecursionPart>());
  int64_t count = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    count += static_cast<int64_t>(ops::RootsOf(rows, static_cast<int64_t>(i)).size());
    if (groups[i] == nullptr)
      parts = RecursionParts();
    else if (*parts)
      (*parts)->push_back({groups[i]->structure, groups[i]->nodes.results});
  }
  if (!status.ok()) parts = status;
  if (parts.ok() && *parts) {
    std::lock_guard lock(saved_->mutex);
    const auto slot = saved_->groups.find(static_cast<int64_t>(InputOf(call, kNumber).At(0, 0)));
    if (slot != saved_->groups.end())
      for (size_t i = 0; i < groups.size(); ++i)
        slot->second[NumberOf(call, static_cast<int64_t>(i))] = std::move(groups[i]);
  }
  const int64_t roots = call.node.FindAttribute(Attributes::kRoots)->AsInteger();
  const int64_t first = rows.rows() == 0 ? 0 : ops::FirstRootOf(NumberOf(call, 0), roots);
  return RowsOfRoots(call, first, count, parts);
}

// In the order in which they are given.
Result<std::vector<ops::AdjointAt>> RecursionAdjoints::GivenIn(const ops::KernelCall& call,
                                                               const Function& function, const Group& group,
                                                               int64_t number) const {
  const Matrix& given = InputOf(call, kGiven);
  const ops::NodeResults& results = group.nodes.results;
  std::vector<ops::AdjointAt> adjoints;
  for (int64_t row = 0; row < given.rows(); ++row) {
    const double* cells = given.data() + row * given.columns();
    if (static_cast<int64_t>(cells[0]) != number) continue;
    ops::AdjointAt& adjoint = adjoints.emplace_back();
    adjoint.place = group.structure->roots[static_cast<size_t>(cells[1])];
    adjoint.of_results.resize(results.infos.size());
    cells += 2;
    for (const size_t result : bodies_.ResultsWithAdjoints(function)) {
      if (results.infos[result].IsScalar()) {
        adjoint.of_results[result] = Scalar(*cells++);
        continue;
      }
      const int64_t count = results.rows[result].columns();
      HEDDLE_ASSIGN_OR_RETURN(Matrix of_result, Matrix::Dense(1, count));
      std::copy_n(cells, count, of_result.mutable_data());
      adjoint.of_results[result] = std::move(of_result);
      cells += count;
    }
    if (cells != given.data() + (row + 1) * given.columns()) return Internal("an adjoint has another size");
  }
  return adjoints;
}

Status RecursionAdjoints::RunBackward(const ops::KernelCall& call, const Function& function,
                                      std::span<Value> results) const {
  const std::vector<std::string> names = bodies_.BackwardInputs(function);
  const auto wanted_count = static_cast<size_t>(call.node.FindAttribute(Attributes::kWanted)->AsInteger());
  std::map<std::string, ValueInfo> wanted;
  for (size_t i = 0; i < wanted_count; ++i) wanted[names[i]] = call.input_infos[i];
  ops::AdjointTotal total(wanted);
  const auto take = [&]() -> Status {
    for (size_t i = 0; i < wanted_count; ++i) {
      HEDDLE_ASSIGN_OR_RETURN(Matrix adjoint, total.Take(names[i]));
      results[i] = std::move(adjoint);
    }
    return OkStatus();
  };
  if (call.phase == Phase::kFinish) {
    HEDDLE_RETURN_IF_ERROR(total.AddLists(call.inputs[0]->matrix()));
    return take();
  }
  HEDDLE_ASSIGN_OR_RETURN(const Setting setting, SettingOf(call, function, names, /*first_input=*/0));
  const int64_t groups = InputOf(call, kGroups).rows();
  if (groups > 0 && call.phase == Phase::kPartial)
    total.BeginPart(NumberOf(call, 0), NumberOf(call, groups - 1) + 1);
  else if (groups > 0)
    total.BeginAll(NumberOf(call, groups - 1) + 1);
  const int64_t at_once = kGroupsOfThread * ops::ParallelThreads();
  for (int64_t begin = 0; begin < groups; begin += at_once) {
    const int64_t end = std::min(begin + at_once, groups);
    std::vector<std::optional<ops::AdjointSums>> sums(static_cast<size_t>(end - begin));
    HEDDLE_RETURN_IF_ERROR(ForGroups(begin, end, [&](int64_t row) -> Status {
      HEDDLE_ASSIGN_OR_RETURN(sums[static_cast<size_t>(row - begin)], SweepBack(call, setting, wanted, row));
      return OkStatus();
    }));
    for (int64_t row = begin; row < end; ++row)
      total.Add(NumberOf(call, row), *std::move(sums[static_cast<size_t>(row - begin)]));
  }
  if (call.phase != Phase::kPartial) return take();
  HEDDLE_ASSIGN_OR_RETURN(Matrix list, total.ToList());
  results[0] = std::move(list);
  return OkStatus();
}

Result<ops::AdjointSums> RecursionAdjoints::SweepBack(const ops::KernelCall& call, const Setting& setting,
                                                      const std::map<std::string, ValueInfo>& wanted,
                                                      int64_t row) const {
  const int64_t number = NumberOf(call, row);
  std::vector<int64_t> roots = ops::RootsOf(InputOf(call, kGroups), row);
  std::shared_ptr<const Group> group;
  {
    std::lock_guard lock(saved_->mutex);
    const auto slot = saved_->groups.find(static_cast<int64_t>(InputOf(call, kNumber).At(0, 0)));
    if (slot != saved_->groups.end())
      if (const auto found = slot->second.find(number); found != slot->second.end()) group = found->second;
  }
  if (group == nullptr || group->roots != roots) {
    HEDDLE_ASSIGN_OR_RETURN(group, Evaluate(setting, std::move(roots), call.context));
    if (group == nullptr) return Internal("a recursion has no batches when its derivative is computed");
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<ops::AdjointAt> given,
                          GivenIn(call, *setting.function, *group, number));
  return ops::SweepBackward(*group->structure, group->nodes, given, wanted, setting.parameters, kernels_,
                            call.context, bodies_.cache());
}

}  // namespace heddle::engine
