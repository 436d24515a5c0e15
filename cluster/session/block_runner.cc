// SPDX-License-Identifier: Apache-2.0
#include "cluster/session/block_runner.h"

#include <algorithm>

#include "core/counted_heap.h"
#include "core/fused_operator.h"
#include "core/hash.h"
#include "ops/formats/files.h"

namespace heddle::cluster {
namespace {

const ops::KernelSource& KernelsOf(const SessionEnvironment& environment) {
  return environment.kernels != nullptr ? *environment.kernels : ops::CatalogKernels();
}

int64_t DenseBytes(const ValueInfo& info) { return info.format == Format::kDense ? KnownBytes(info) : 0; }

// About what the acts of a task read and wrote on this rank. Fused operators count for themselves.
int64_t BytesMoved(const Plan& plan, const actor::TaskStatistics& task) {
  const Node& node = plan.graph[task.node];
  const bool whole = task.phase == Phase::kWhole;
  if (!(whole || task.phase == Phase::kPartial) || task.acts == 0) return 0;
  if (node.Is("variable") || node.Is("assign") || IsFused(node)) return 0;
  int64_t bytes = 0;
  for (const ValueInfo& result : ResultsOf(node)) bytes += DenseBytes(result);
  for (const NodeId input : node.inputs)
    if (input != kNoNode) bytes += DenseBytes(plan.graph[input].info);
  const ValueInfo& first = ResultsOf(node)[0];
  const bool is_part = !whole || (first.IsTabular() && task.rows < task.acts * first.shape.rows);
  return task.acts * bytes / (is_part ? plan.ranks : 1);
}

}  // namespace

BlockRunner::BlockRunner(const SessionOptions& options, const SessionEnvironment& environment,
                         ops::KernelContext& context)
    : options_(options),
      environment_(environment),
      context_(context),
      kernels_(KernelsOf(environment)),
      scalars_(options.rank, kernels_, context),
      seeds_(options.seed),
      plans_(options.rank, options.ranks, environment.control),
      compiler_(options, environment.files, context.clock) {}

Status BlockRunner::AddPlans() {
  for (const std::string& text : options_.plans) HEDDLE_RETURN_IF_ERROR(plans_.AddText(text));
  return OkStatus();
}

actor::Runtime& BlockRunner::runtime() {
  std::lock_guard lock(runtime_mutex_);
  if (runtime_ == nullptr) {
    actor::RuntimeOptions options;
    options.rank = static_cast<uint32_t>(options_.rank);
    options.threads = options_.threads;
    options.times_acts = options_.times_operators;
    runtime_ = actor::Runtime::Create(options, kernels_, context_, environment_.link);
    if (!cancelled_.ok()) runtime_->Cancel(cancelled_);
  }
  return *runtime_;
}

void BlockRunner::Cancel(const Status& why) {
  std::lock_guard lock(runtime_mutex_);
  if (cancelled_.ok()) cancelled_ = why;
  if (runtime_ != nullptr) runtime_->Cancel(why);
}

Status BlockRunner::Run(int32_t block, const Graph& graph, Frame* frame) {
  if (graph.nodes.empty()) return OkStatus();
  const Status status = RunBlock(block, graph, frame);
  // What is refused between operators still has the place of its statement.
  return status.code() == StatusCode::kResourceExhausted ? status.At(graph.nodes.front().position) : status;
}

Status BlockRunner::RunBlock(int32_t block, const Graph& graph, Frame* frame) {
  seeds_.DrawFor(graph, frame);
  HEDDLE_ASSIGN_OR_RETURN(const bool done,
                          WithinMemory("variables", [&] { return scalars_.Evaluate(graph, frame); }));
  if (done) {
    ++statistics_.scalar_blocks;
    return OkStatus();
  }
  return RunByPlans(block, graph, frame);
}

Status BlockRunner::RunByPlans(int32_t block, const Graph& graph, Frame* frame) {
  uint64_t history = compiler_.FirstHistory(block);
  std::vector<std::string> temporaries;
  Graph rest = graph;
  Status status;
  for (int part = 0;; ++part) {
    if (part > 0) {
      Result<bool> done = WithinMemory("variables", [&] { return scalars_.EvaluateOnce(rest, frame); });
      status = done.status();
      if (!status.ok() || *done) break;
    }
    Result<FileLook> look = Look(history, rest, *frame);
    status = look.status();
    if (!status.ok()) break;
    history = BlockCompiler::HistoryOf(history, *look);
    Result<BlockPart> next = WithinMemory(
        "a plan", [&] { return compiler_.NextPart(block, std::move(rest), *frame, part, *look); });
    status = next.status();
    if (!status.ok()) break;
    temporaries.insert(temporaries.end(), next->temporaries.begin(), next->temporaries.end());
    uint64_t key = 0;
    status = RunPlan(block, history, next->graph, frame, &key);
    if (!status.ok() || next->rest.nodes.empty()) break;
    history = FoldHash(history, key);
    rest = std::move(next->rest);
  }
  for (const std::string& name : temporaries) frame->Erase(name);
  return status;
}

Result<FileLook> BlockRunner::Look(uint64_t history, const Graph& rest, const Frame& frame) {
  if (!ReadsFiles(rest)) return FileLook();
  HEDDLE_ASSIGN_OR_RETURN(const std::string text, plans_.Share(history, guard_, [&] {
    return compiler_.LookAt(rest, frame).ToText();
  }));
  HEDDLE_ASSIGN_OR_RETURN(FileLook look, FileLook::Parse(text));
  if (environment_.files != nullptr && environment_.files->versions() != nullptr)
    environment_.files->versions()->Expect(look.versions, options_.rank);
  return look;
}

Status BlockRunner::RunPlan(int32_t block, uint64_t history, const Graph& graph, Frame* frame,
                            uint64_t* key) {
  *key = compiler_.KeyOf(history, graph, *frame);
  guard_.AddPlan(block, *key);
  const int64_t misses = plans_.misses();
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const Plan> plan, plans_.Obtain(*key, guard_, [&] {
    return WithinMemory("a plan", [&] { return compiler_.MakePlan(graph, *frame); });
  }));
  if (plans_.misses() != misses && environment_.observe_plan) environment_.observe_plan(*plan);

  std::map<std::string, Value> live_in;
  HEDDLE_RETURN_IF_ERROR(
      WithinMemory("variables", [&] { return TakeLiveIns(block, *plan, frame, &live_in); }));
  Result<actor::RunResult> result = runtime().Run(plan, ++runs_, std::move(live_in));
  failed_in_plan_ = !result.ok();
  HEDDLE_RETURN_IF_ERROR(result.status());
  Count(*plan, *result);
  return Adopt(*plan, *std::move(result), frame);
}

Status BlockRunner::TakeLiveIns(int32_t block, const Plan& plan, Frame* frame,
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

Status BlockRunner::Adopt(const Plan& plan, actor::RunResult result, Frame* frame) {
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

void BlockRunner::Count(const Plan& plan, const actor::RunResult& result) {
  for (const actor::TaskStatistics& task : result.statistics) {
    if (task.node == kNoNode) continue;
    const std::string& op = plan.graph[task.node].op;
    OperatorStatistics& entry =
        statistics_.operators[task.phase == Phase::kWhole ? op : fmt::format("{}.{}", op, Name(task.phase))];
    entry.acts += task.acts;
    entry.kernel_ns += task.kernel_ns;
    entry.rows += task.rows;
    entry.bytes_in += task.bytes_in;
    statistics_.bytes_moved += BytesMoved(plan, task);
    if (plan.ranks > 1 && task.acts > 0)
      statistics_.rows_held = std::max(statistics_.rows_held, task.rows / task.acts);
  }
}

}  // namespace heddle::cluster
