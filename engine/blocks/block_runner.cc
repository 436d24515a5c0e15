// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/block_runner.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "actor/run_number.h"
#include "core/hash.h"
#include "core/memory/counted_heap.h"
#include "core/programs/fused_operator.h"
#include "engine/blocks/bytes_moved.h"
#include "ops/io/files/files.h"

namespace heddle::engine {
namespace {

constexpr int32_t kExchange = -1;  // No block has this number.

// Whether the bytes of a task count as the operator's. Fused operators and those of phases count for
// themselves.
bool CountsBytes(const Plan& plan, const actor::TaskStatistics& task) {
  const Node& node = plan.graph[task.node];
  return (task.phase == Phase::kWhole || task.phase == Phase::kPartial) && !node.Is("variable") &&
         !node.Is("assign") && !IsFused(node) && !node.Is("phased");
}

}  // namespace

BlockRunner::BlockRunner(const SessionOptions& options, const SessionEnvironment& environment,
                         ops::KernelContext& context, SessionRuntime& shared, RandomSeeds seeds,
                         uint32_t lane)
    : options_(options),
      environment_(environment),
      shared_(shared),
      context_(context),
      runs_directly_(RunsDirectly(options)),
      scalars_(options.rank, shared.kernels(), context),
      seeds_(std::move(seeds)),
      compiler_(options, environment.files, context.clock),
      lane_(lane) {}

Status BlockRunner::AddPlans() {
  for (const std::string& text : options_.plans) HEDDLE_RETURN_IF_ERROR(plans().AddText(text));
  return OkStatus();
}

Status BlockRunner::Run(int32_t block, const Graph& graph, VariableTable* frame, uint64_t variant) {
  if (graph.nodes.empty()) return OkStatus();
  const Status status = RunBlock(block, graph, variant, frame);
  // What is refused between operators still has the place of its statement.
  return status.code() == StatusCode::kResourceExhausted ? status.At(graph.nodes.front().position) : status;
}

BlockRunner::Known& BlockRunner::KnownOf(const Graph& graph) {
  const auto [found, is_new] = known_.try_emplace(&graph);
  if (is_new) {
    found->second.scalars = ScalarBlocks::Prepare(graph);
    found->second.draws = RandomSeeds::IsDrawnFor(graph);
  }
  return found->second;
}

Status BlockRunner::Settle() {
  if (grown_.empty()) return OkStatus();
  return WithinMemory("variables", [&] { return grown_.Settle(); });
}

Result<const Scalar*> BlockRunner::Decide(const Graph& graph, const VariableTable& frame) {
  Known& known = KnownOf(graph);
  if (known.draws) return nullptr;
  Result<const Scalar*> decided = WithinMemory(
      "variables", [&]() -> Result<const Scalar*> { return scalars_.Decide(graph, &known.scalars, frame); });
  if (!decided.ok()) return decided.status().At(graph.nodes.front().position);
  if (*decided != nullptr) ++statistics_.scalar_blocks;
  return decided;
}

Status BlockRunner::RunBlock(int32_t block, const Graph& graph, uint64_t variant, VariableTable* frame) {
  Known& known = KnownOf(graph);
  if (known.draws) seeds_.DrawFor(graph, frame);
  if (!grown_.empty() && known.scalars.renames) HEDDLE_RETURN_IF_ERROR(Settle());
  HEDDLE_ASSIGN_OR_RETURN(const bool done, WithinMemory("variables", [&] {
                            return scalars_.Evaluate(graph, &known.scalars, frame);
                          }));
  if (done) {
    ++statistics_.scalar_blocks;
    return OkStatus();
  }
  return RunParts(block, graph, variant, &known, frame);
}

Status BlockRunner::RunParts(int32_t block, const Graph& graph, uint64_t variant, Known* known,
                             VariableTable* frame) {
  Rest rest;
  rest.graph = &graph;
  rest.parts = &known->parts;
  rest.history = compiler_.FirstHistory(block);
  if (variant != 0) rest.history = FoldHash(rest.history, variant);
  std::vector<std::string> temporaries;
  Status status;
  for (;; ++rest.number) {
    if (rest.number > 0) {
      const Result<bool> done = WithinMemory("variables", [&] {
        return rest.scalars != nullptr ? scalars_.Evaluate(*rest.graph, rest.scalars, frame)
                                       : scalars_.EvaluateOnce(*rest.graph, frame);
      });
      status = done.status();
      if (!status.ok() || *done) break;
    }
    const Result<bool> has_run = RunKnownPart(block, &rest, frame, &temporaries);
    status = has_run.status();
    if (status.ok() && !*has_run) status = RunNewPart(block, &rest, frame, &temporaries);
    if (!status.ok() || rest.graph->nodes.empty()) break;
  }
  for (const std::string& name : temporaries) frame->Erase(name);
  return status;
}

Result<bool> BlockRunner::RunKnownPart(int32_t block, Rest* rest, VariableTable* frame,
                                       std::vector<std::string>* temporaries) {
  if (rest->parts == nullptr) return false;
  HEDDLE_ASSIGN_OR_RETURN(KnownPart* const part, WithinMemory("variables", [&]() -> Result<KnownPart*> {
                            return rest->parts->Find(*frame);
                          }));
  if (part == nullptr) return false;
  if (grown_.Any(frame, [&](const std::string& name) { return part->ReadsCellsOf(name); }))
    HEDDLE_RETURN_IF_ERROR(Settle());
  HEDDLE_RETURN_IF_ERROR(RunPart(block, part, rest, frame, temporaries));
  return true;
}

Status BlockRunner::RunPart(int32_t block, KnownPart* part, Rest* rest, VariableTable* frame,
                            std::vector<std::string>* temporaries) {
  const std::vector<std::string>& made = part->temporaries();
  temporaries->insert(temporaries->end(), made.begin(), made.end());
  const auto make = [&] {
    return WithinMemory("a plan", [&] { return compiler_.MakePlan(part->graph(), *frame); });
  };
  HEDDLE_RETURN_IF_ERROR(part->IsDirect() ? RunDirectly(part, frame)
                                          : RunPlan(block, part->key(), make, frame));
  rest->history = FoldHash(rest->history, part->key());
  rest->graph = &part->rest();
  rest->scalars = &part->prepared_rest();
  rest->parts = &part->next();
  return OkStatus();
}

Status BlockRunner::RunDirectly(KnownPart* part, VariableTable* frame) {
  if (alone_ == nullptr) {
    shared_.runtime();  // Its arena comes first: oneTBB never has more threads than the first one asks for.
    alone_ = std::make_unique<ops::Arena>(1);
  }
  Status status;
  alone_->Execute([&] {
    status =
        WithinMemory("variables", [&] { return part->Run(shared_.kernels(), context_, frame, &grown_); });
  });
  HEDDLE_RETURN_IF_ERROR(status);
  ++statistics_.direct_parts;
  return OkStatus();
}

Status BlockRunner::RunNewPart(int32_t block, Rest* rest, VariableTable* frame,
                               std::vector<std::string>* temporaries) {
  HEDDLE_RETURN_IF_ERROR(Settle());
  HEDDLE_ASSIGN_OR_RETURN(const FileLook look, Look(rest->history, *rest->graph, *frame));
  rest->history = BlockCompiler::HistoryOf(rest->history, look);
  HEDDLE_ASSIGN_OR_RETURN(BlockPart next, WithinMemory("a plan", [&] {
                            return compiler_.NextPart(block, *rest->graph, *frame, rest->number, look);
                          }));
  const uint64_t key = compiler_.KeyOf(rest->history, next.graph, *frame);
  if (rest->parts != nullptr && next.error.ok()) {
    HEDDLE_ASSIGN_OR_RETURN(KnownPart* const part,
                            WithinMemory("a plan", [&] { return KeepPart(next, key, rest, *frame); }));
    if (part != nullptr) return RunPart(block, part, rest, frame, temporaries);
  }
  temporaries->insert(temporaries->end(), next.temporaries.begin(), next.temporaries.end());
  const auto make = [&] {
    return WithinMemory("a plan", [&] { return compiler_.MakePlan(next.graph, *frame); });
  };
  HEDDLE_RETURN_IF_ERROR(RunPlan(block, key, make, frame));
  rest->history = FoldHash(rest->history, key);
  rest->own = std::move(next.rest);
  rest->graph = &rest->own;
  rest->scalars = nullptr;
  rest->parts = nullptr;
  return OkStatus();
}

// nullptr where nothing is to be kept of it.
Result<KnownPart*> BlockRunner::KeepPart(const BlockPart& next, uint64_t key, const Rest* rest,
                                         const VariableTable& frame) {
  KnownParts* const parts = rest->parts;
  if (runs_directly_) {
    HEDDLE_ASSIGN_OR_RETURN(
        std::unique_ptr<KnownPart> direct,
        KnownPart::MakeDirect(*rest->graph, next, key, options_, frame, parts, &statistics_));
    if (direct != nullptr) {
      ++statistics_.direct_compiled;
      if (environment_.observe_plan) {
        Plan shown;
        shown.key = key;
        shown.graph = direct->graph();
        shared_.Show(shown);
      }
      return parts->Add(std::move(direct));
    }
  }
  if (!parts->WasHere()) return nullptr;
  return parts->Add(KnownPart::MakePlanned(*rest->graph, next, key, options_, frame, parts));
}

Result<FileLook> BlockRunner::Look(uint64_t history, const Graph& rest, const VariableTable& frame) {
  if (!ReadsFiles(rest)) return FileLook();
  HEDDLE_ASSIGN_OR_RETURN(const std::string text,
                          Share(history, [&] { return compiler_.LookAt(rest, frame).ToText(); }));
  HEDDLE_ASSIGN_OR_RETURN(FileLook look, FileLook::Parse(text));
  if (environment_.files != nullptr && environment_.files->versions() != nullptr)
    environment_.files->versions()->Expect(look.versions, options_.rank);
  return look;
}

Status BlockRunner::Exchange(const std::map<std::string, Distribution>& wanted, VariableTable* frame) {
  HEDDLE_RETURN_IF_ERROR(Settle());
  Graph graph;
  uint64_t history = FoldHash(compiler_.FirstHistory(kExchange), wanted.size());
  for (const auto& [name, distribution] : wanted) {
    Node variable;
    variable.op = "variable";
    variable.info = frame->Find(name)->info;
    variable.SetAttribute("name", name);
    Node assign = variable;
    assign.op = "assign";
    assign.inputs = {graph.Add(std::move(variable))};
    graph.Add(std::move(assign));
    history = FoldHash(FoldHash(history, name), distribution.ToText());
  }
  const auto make = [&] {
    return WithinMemory("a plan", [&] { return compiler_.MakeExchange(graph, wanted, *frame); });
  };
  return RunPlan(kExchange, compiler_.KeyOf(history, graph, *frame), make, frame);
}

Status BlockRunner::RunForAll(int32_t block, const Graph& graph, uint64_t history,
                              const std::vector<std::string>& wanted, VariableTable* frame) {
  std::map<std::string, Distribution> everywhere;
  for (const std::string& name : wanted)
    if (options_.ranks > 1) everywhere[name] = Distribution::Each();
  const uint64_t key = compiler_.KeyOf(FoldHash(compiler_.FirstHistory(block), history), graph, *frame);
  const auto make = [&] {
    return WithinMemory("a plan", [&] { return compiler_.MakePlan(graph, *frame, everywhere); });
  };
  return RunPlan(block, key, make, frame);
}

Status BlockRunner::RunPlan(int32_t block, uint64_t key, const std::function<Result<Plan>()>& make,
                            VariableTable* frame) {
  guard_.AddPlan(block, key);
  bool is_new = false;
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const Plan> plan, plans().Obtain(key, guard_, make, &is_new));
  if (is_new) shared_.Show(*plan);

  std::map<std::string, Value> live_in;
  HEDDLE_RETURN_IF_ERROR(
      WithinMemory("variables", [&] { return TakeLiveIns(block, *plan, frame, &live_in); }));
  Result<actor::RunResult> result =
      shared_.runtime().Run(plan, actor::MakeRun(lane_, ++runs_), std::move(live_in));
  failed_in_plan_ = !result.ok();
  HEDDLE_RETURN_IF_ERROR(result.status());
  Count(plan, *result);
  return Adopt(*plan, *std::move(result), frame);
}

Status BlockRunner::TakeLiveIns(int32_t block, const Plan& plan, VariableTable* frame,
                                std::map<std::string, Value>* live_in) const {
  for (const Binding& binding : plan.live_in) {
    const Variable* variable = frame->Find(binding.variable);
    if (variable == nullptr)
      return Internal("a plan of block {} reads {}, which has no value", block, binding.variable);
    if (!variable->IsHeldBy(options_.rank)) continue;
    const bool is_replaced = std::any_of(plan.live_out.begin(), plan.live_out.end(), [&](const Binding& out) {
      return out.variable == binding.variable;
    });
    if (is_replaced) {
      // The plan's alone: it may be overwritten.
      HEDDLE_ASSIGN_OR_RETURN(Variable replaced, frame->Take(binding.variable));
      live_in->emplace(binding.variable, std::move(replaced.value));
    } else {
      live_in->emplace(binding.variable, variable->value);
    }
  }
  return OkStatus();
}

Status BlockRunner::Adopt(const Plan& plan, actor::RunResult result, VariableTable* frame) {
  for (const Binding& binding : plan.live_out) {
    Variable variable;
    variable.distribution = binding.distribution;
    variable.info = binding.info;
    if (auto info = result.infos.find(binding.variable); info != result.infos.end())
      variable.info = info->second;
    if (variable.IsHeldBy(options_.rank)) {
      auto found = result.live_out.find(binding.variable);
      if (found == result.live_out.end())
        return Internal("a plan ended without a value for {}", binding.variable);
      variable.value = std::move(found->second);
      if (variable.value.IsScalar()) variable.info = ValueInfo::OfScalar(variable.value.scalar().type());
      if (binding.distribution.IsSplit())
        statistics_.rows_held = std::max(statistics_.rows_held, variable.value.shape().rows);
    }
    if (variable.info.IsTabular() && !variable.info.IsSized())
      return Internal("a plan ended without the size of {}", binding.variable);
    frame->Set(binding.variable, std::move(variable));
  }
  return OkStatus();
}

void BlockRunner::Absorb(const BlockRunner& other) {
  statistics_.Add(other.statistics_);
  statistics_.planning_ns += other.compiler_.planning_ns();
  statistics_.fusion_ns += other.compiler_.fusion_ns();
  statistics_.fusion_costed += other.compiler_.fusion_costed();
}

BlockRunner::PlanFacts& BlockRunner::FactsOf(const std::shared_ptr<const Plan>& plan,
                                             const std::vector<actor::TaskStatistics>& tasks) {
  PlanFacts& facts = facts_[plan->key];
  if (facts.plan.lock() == plan) return facts;
  if (facts_.size() > kMostFacts) {
    facts_.clear();
    return FactsOf(plan, tasks);
  }
  facts = {.plan = plan, .tasks = {}};
  for (const actor::TaskStatistics& task : tasks) {
    TaskFacts& fact = facts.tasks.emplace_back();
    if (task.node == kNoNode) continue;
    const Node& node = plan->graph[task.node];
    const bool whole = task.phase == Phase::kWhole;
    fact.counts = &statistics_.operators[whole ? node.op : fmt::format("{}.{}", node.op, Name(task.phase))];
    if (CountsBytes(*plan, task)) fact.bytes = BytesMoved(plan->graph, task.node);
    const ValueInfo& first = ResultsOf(node)[0];
    fact.rows = !whole ? std::numeric_limits<int64_t>::max() : first.IsTabular() ? first.shape.rows : 0;
    fact.moves_matrices = task.phase != Phase::kFinish && MovesMatrices(plan->graph, task.node);
  }
  return facts;
}

void BlockRunner::Count(const std::shared_ptr<const Plan>& plan, const actor::RunResult& result) {
  const std::vector<TaskFacts>& facts = FactsOf(plan, result.statistics).tasks;
  for (size_t i = 0; i < facts.size(); ++i) {
    const TaskFacts& fact = facts[i];
    const actor::TaskStatistics& task = result.statistics[i];
    if (fact.counts == nullptr || task.acts == 0) continue;
    fact.counts->acts += task.acts;
    fact.counts->kernel_ns += task.kernel_ns;
    fact.counts->rows += task.rows;
    fact.counts->bytes_in += task.bytes_in;
    // Of the rows of all ranks, these are some.
    const bool is_part = task.rows / task.acts < fact.rows;
    statistics_.bytes_moved += task.acts * fact.bytes / (is_part ? plan->ranks : 1);
    if (fact.moves_matrices) statistics_.matrix_operators += task.acts;
    if (plan->ranks > 1) statistics_.rows_held = std::max(statistics_.rows_held, task.rows / task.acts);
  }
}

}  // namespace heddle::engine
