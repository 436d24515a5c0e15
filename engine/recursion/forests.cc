// SPDX-License-Identifier: Apache-2.0
#include "engine/recursion/forests.h"

#include <algorithm>
#include <unordered_map>

#include "engine/recursion/graph_runner.h"
#include "engine/recursion/structure_inputs.h"

namespace heddle::engine {
namespace {

constexpr uint64_t kMostRoots = 1 << 20;

// What has to be exchanged for every rank to read the matrices.
std::map<std::string, Distribution> Scattered(const std::vector<std::string>& matrices,
                                              const VariableTable& frame) {
  std::map<std::string, Distribution> wanted;
  for (const std::string& name : matrices) {
    const Variable* const variable = frame.Find(name);
    if (variable != nullptr && variable->info.IsTabular() && !variable->distribution.IsEach())
      wanted[name] = Distribution::Each();
  }
  return wanted;
}

}  // namespace

struct RecursionForests::Forest {
  const Block* loop = nullptr;
  const Block* call = nullptr;  // The block that makes the calls.
  std::vector<int64_t> roots;   // Of the rounds.
  bool has_failed = false;
  std::optional<RecursionEvaluation> evaluation;
  std::unordered_map<int64_t, size_t> number_of;  // Of each root among the roots.
};

RecursionForests::RecursionForests(const SessionOptions& options, GraphRunner& runner,
                                   std::function<std::string(const std::string& function)> node_of)
    : options_(options), runner_(runner), node_of_(std::move(node_of)) {}

RecursionForests::~RecursionForests() = default;

Result<bool> RecursionForests::EnterLoop(const Block& loop,
                                         const std::function<int64_t(uint64_t round)>& value_of,
                                         uint64_t rounds, VariableTable* frame) {
  const auto [found, is_new] = loops_.try_emplace(&loop);
  if (is_new) found->second = compiler::FindRoots(loop, node_of_);
  if (!found->second) return false;
  // A loop that is no forest hides the one around it that is the same text.
  auto forest =
      std::make_shared<Forest>(Forest{.loop = &loop, .call = found->second->call, .has_failed = true});
  std::optional<std::vector<int64_t>> roots;
  if (rounds >= 2 && rounds <= kMostRoots) {
    const ops::StructureProgram& structure = found->second->structure;
    const std::map<std::string, Distribution> wanted = Scattered(structure.matrices, *frame);
    if (options_.ranks > 1 && !wanted.empty()) HEDDLE_RETURN_IF_ERROR(runner_.Exchange(wanted, frame));
    roots = RootsOf(structure, value_of, rounds, *frame);
  }
  forest->has_failed = !roots;
  if (roots) forest->roots = *std::move(roots);
  forests_.push_back(std::move(forest));
  return !forests_.back()->has_failed;
}

void RecursionForests::LeaveLoop(const Block& loop) {
  if (!forests_.empty() && forests_.back()->loop == &loop) forests_.pop_back();
}

const Block* RecursionForests::CallOf(const Block& loop) const {
  if (forests_.empty() || forests_.back()->loop != &loop || forests_.back()->has_failed) return nullptr;
  return forests_.back()->call;
}

Status RecursionForests::EvaluateForest(const Evaluate& evaluate, Forest* forest) {
  HEDDLE_ASSIGN_OR_RETURN(forest->evaluation, evaluate(*forest->loop, forest->roots));
  forest->has_failed = !forest->evaluation;
  if (forest->has_failed) return OkStatus();
  for (size_t i = 0; i < forest->roots.size(); ++i) forest->number_of.emplace(forest->roots[i], i);
  return OkStatus();
}

std::optional<RecursionForests::Root> RecursionForests::FindIn(const Forest& forest, int64_t node) {
  if (!forest.evaluation) return std::nullopt;
  const auto number = forest.number_of.find(node);
  if (number == forest.number_of.end()) return std::nullopt;
  return Root{&*forest.evaluation, number->second};
}

Result<std::optional<RecursionForests::Root>> RecursionForests::Find(const Block& call, int64_t node,
                                                                     const Evaluate& evaluate) {
  const auto found = std::find_if(forests_.rbegin(), forests_.rend(),
                                  [&](const auto& forest) { return forest->call == &call; });
  if (found == forests_.rend())
    return adopted_ != nullptr && adopted_->call == &call ? FindIn(*adopted_, node) : std::nullopt;
  Forest& forest = **found;
  if (!forest.has_failed && !forest.evaluation) HEDDLE_RETURN_IF_ERROR(EvaluateForest(evaluate, &forest));
  return FindIn(forest, node);
}

Result<RecursionForests::Evaluated> RecursionForests::EvaluateLoop(const Evaluate& evaluate) {
  Forest& forest = *forests_.back();
  if (!forest.has_failed && !forest.evaluation) HEDDLE_RETURN_IF_ERROR(EvaluateForest(evaluate, &forest));
  return Evaluated(forests_.back());
}

}  // namespace heddle::engine
