// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/block_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "actor/run_number.h"
#include "core/environment/progress_board.h"
#include "core/hash.h"
#include "core/memory/block_pool.h"
#include "core/memory/counted_heap.h"
#include "core/values/sizes.h"
#include "ops/io/files/files.h"

namespace heddle::engine {
namespace {

// No block has these numbers.
constexpr int32_t kExchange = -1;
constexpr int32_t kLookAtFile = -2;
constexpr int32_t kSource = -3;

// What they take of the pool of blocks, those whose size a plan knows.
int64_t BytesOfMatrices(const std::map<std::string, Value>& values) {
  int64_t bytes = 0;
  for (const auto& [name, value] : values)
    if (value.IsMatrix() && !value.matrix().IsSparse()) bytes += BlockPool::ClassBytes(value.bytes());
  return bytes;
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
      counts_(&statistics_),
      lane_(lane),
      progress_(lane == 0 ? environment.progress : nullptr),
      thread_name_(lane == 0 ? "main" : fmt::format("lane {}", lane)),
      calls_(environment.recorder == nullptr ? nullptr : std::make_shared<std::vector<CallSite>>()) {}

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

Status BlockRunner::SettleGrown() {
  return WithinMemory("variables", [&] { return grown_.Settle(); });
}

Result<const Scalar*> BlockRunner::Decide(const Graph& graph, const VariableTable& frame) {
  CompiledBlock& block = CompiledFor(graph);
  if (block.draws_seeds()) return nullptr;
  Result<const Scalar*> decided = WithinMemory(
      "variables", [&]() -> Result<const Scalar*> { return scalars_.Decide(&block.scalars(), frame); });
  if (!decided.ok()) return decided.status().At(graph.nodes.front().position);
  if (*decided != nullptr) ++statistics_.scalar_blocks;
  return decided;
}

CompiledBlock& BlockRunner::CompiledFor(const Graph& graph) {
  return compiled_.try_emplace(&graph, graph).first->second;
}

Status BlockRunner::RunBlock(int32_t block, const Graph& graph, uint64_t variant, VariableTable* frame) {
  CompiledBlock& compiled = CompiledFor(graph);
  if (compiled.draws_seeds()) seeds_.DrawFor(graph, frame);
  // Most blocks of a loop end here: what the parts need is not prepared before.
  HEDDLE_ASSIGN_OR_RETURN(const bool is_done, RunInPlace(&compiled, frame));
  if (is_done) {
    ++statistics_.scalar_blocks;
    return OkStatus();
  }
  Entry entry{.block = block, .left = &compiled, .history = compiler_.FirstHistory(block)};
  if (variant != 0) entry.history = FoldHash(entry.history, variant);
  const Status status = RunParts(&entry, frame);
  for (const std::string& name : entry.temporaries) frame->Erase(name);
  return status;
}

Status BlockRunner::RunParts(Entry* entry, VariableTable* frame) {
  for (bool is_done = false; !is_done; ++entry->part_number) {
    HEDDLE_ASSIGN_OR_RETURN(CompiledPart* const part, FindPart(entry, frame));
    entry->temporaries.insert(entry->temporaries.end(), part->temporaries().begin(),
                              part->temporaries().end());
    if (part->program() != nullptr) {
      HEDDLE_RETURN_IF_ERROR(RunDirectly(part->program(), frame));
    } else {
      const int64_t beside = BytesBeside(part->graph(), *frame);
      const auto make = [&] {
        return WithinMemory("a plan",
                            [&] { return compiler_.MakePlan(part->graph(), *frame, {}, 0, beside); });
      };
      HEDDLE_RETURN_IF_ERROR(
          RunByPlan(entry->block, BlockCompiler::KeyBeside(part->key(), beside), make, frame));
    }
    entry->history = FoldHash(entry->history, part->key());
    entry->left = &part->rest();
    if (entry->left->graph().nodes.empty()) break;
    HEDDLE_ASSIGN_OR_RETURN(is_done, RunInPlace(entry->left, frame));
  }
  return OkStatus();
}

Result<bool> BlockRunner::RunInPlace(CompiledBlock* block, VariableTable* frame) {
  if (block->scalars().renames_variables()) HEDDLE_RETURN_IF_ERROR(Settle());
  return WithinMemory("variables", [&] { return scalars_.Evaluate(&block->scalars(), frame); });
}

Status BlockRunner::RunDirectly(DirectProgram* program, VariableTable* frame) {
  if (one_thread_ == nullptr) {
    shared_.runtime();  // Its arena comes first: oneTBB never has more threads than the first one asks for.
    one_thread_ = std::make_unique<ops::Arena>(1);
  }
  if (progress_ != nullptr) progress_->BeginAct(program->line());
  const DirectRecord record{.recorder = environment_.recorder, .thread = thread_name_, .calls = calls_};
  Status status;
  one_thread_->Execute([&] {
    status = WithinMemory("variables",
                          [&] { return program->Run(shared_.kernels(), context_, frame, &grown_, record); });
  });
  HEDDLE_RETURN_IF_ERROR(status);
  ++statistics_.direct_parts;
  return OkStatus();
}

Result<CompiledPart*> BlockRunner::FindPart(Entry* entry, VariableTable* frame) {
  HEDDLE_ASSIGN_OR_RETURN(CompiledPart* const part, WithinMemory("variables", [&]() -> Result<CompiledPart*> {
                            return entry->left->Find(*frame);
                          }));
  if (part == nullptr) return CompilePart(entry, frame);
  if (grown_.Any(frame, [&](const std::string& name) { return part->ReadsCellsOf(name); }))
    HEDDLE_RETURN_IF_ERROR(Settle());
  return part;
}

Result<CompiledPart*> BlockRunner::CompilePart(Entry* entry, VariableTable* frame) {
  HEDDLE_RETURN_IF_ERROR(Settle());
  CompiledBlock& left = *entry->left;
  HEDDLE_ASSIGN_OR_RETURN(const FileLook look, Look(entry->history, left.graph(), *frame));
  entry->history = BlockCompiler::HistoryOf(entry->history, look);
  HEDDLE_ASSIGN_OR_RETURN(BlockPart next, WithinMemory("a plan", [&] {
                            return compiler_.NextPart(entry->block, left.graph(), *frame, entry->part_number,
                                                      look);
                          }));
  const bool has_error = !next.error.ok();  // Behind the part: it is met again when the rest is compiled.
  const uint64_t key = compiler_.KeyOf(entry->history, next.graph, *frame);
  auto part = std::make_unique<CompiledPart>(std::move(next), key);
  CompiledPart* const compiled = part.get();
  if (!has_error && runs_directly_) {
    HEDDLE_ASSIGN_OR_RETURN(const bool is_direct, WithinMemory("a plan", [&] {
                              return left.AddDirect(&part, options_, *frame, &statistics_);
                            }));
    if (is_direct) {
      ++statistics_.direct_compiled;
      ShowDirect(*compiled);
      return compiled;
    }
  }
  bool is_added = false;
  if (!has_error)
    HEDDLE_RETURN_IF_ERROR(WithinMemory("a plan", [&] {
      is_added = left.AddPlanned(&part, options_, *frame);
      return OkStatus();
    }));
  if (!is_added) entry->single_use.push_back(std::move(part));
  return compiled;
}

void BlockRunner::ShowDirect(const CompiledPart& part) {
  if (!environment_.observe_plan) return;
  Plan shown;
  shown.key = part.key();
  shown.graph = part.graph();
  shared_.Show(shown);
}

Result<FileLook> BlockRunner::Look(uint64_t history, const Graph& rest, const VariableTable& frame) {
  if (!ReadsFiles(rest)) return FileLook();
  const auto expect = [&](const FileLook& look) {
    if (environment_.files != nullptr && environment_.files->versions() != nullptr)
      environment_.files->versions()->Expect(look.versions, options_.rank);
  };
  const auto look_at_files = [&] {
    FileLook look = compiler_.LookAt(rest, frame);
    expect(look);
    if (options_.ranks == 1 || environment_.files == nullptr)
      look.shared.clear();
    else
      FindSharedLooks(rest, options_.min_distributed_bytes, *environment_.files, &look);
    return look.ToText();
  };
  HEDDLE_ASSIGN_OR_RETURN(const std::string text, Share(history, look_at_files));
  HEDDLE_ASSIGN_OR_RETURN(FileLook look, FileLook::Parse(text));
  expect(look);
  for (const auto& [id, path] : look.shared) HEDDLE_RETURN_IF_ERROR(ShareLook(rest[id], path));
  return look;
}

Status BlockRunner::ShareLook(const Node& read, const std::string& path) {
  uint64_t history = FoldHash(0, path);
  for (const auto& [name, value] : read.attributes)
    history = FoldHash(FoldHash(history, name), value.ToText());
  VariableTable frame;
  return RunForAll(kLookAtFile, GraphOfSharedLook(read, path, options_.ranks), history,
                   {std::string(kLooked)}, &frame);
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
  return RunByPlan(kExchange, compiler_.KeyOf(history, graph, *frame), make, frame);
}

Status BlockRunner::RunForAll(int32_t block, const Graph& graph, uint64_t history,
                              const std::vector<std::string>& wanted, VariableTable* frame) {
  std::map<std::string, Distribution> everywhere;
  for (const std::string& name : wanted)
    if (options_.ranks > 1) everywhere[name] = Distribution::Each();
  const int64_t beside = BytesBeside(graph, *frame);
  const uint64_t key = BlockCompiler::KeyBeside(
      compiler_.KeyOf(FoldHash(compiler_.FirstHistory(block), history), graph, *frame), beside);
  const auto make = [&] {
    return WithinMemory("a plan", [&] { return compiler_.MakePlan(graph, *frame, everywhere, 0, beside); });
  };
  return RunByPlan(block, key, make, frame);
}

// Everything that decides is the same on all ranks: the graphs, types, sizes and places of variables, and
// what the plan says of its tasks.
Result<Speculation*> BlockRunner::RunAhead(const Block& loop, VariableTable* frame) {
  if (options_.ranks == 1 || lane_ != 0 || recorder() != nullptr) return nullptr;
  const auto [found, is_new] = speculations_.try_emplace(&loop);
  if (is_new) found->second = SpeculationOf(loop);
  if (!found->second.has_value() || found->second->is_refused) return nullptr;
  Speculation& speculation = *found->second;
  for (const Node& node : speculation.graph.nodes) {
    if (!node.Is("variable")) continue;
    const Variable* const variable = frame->Find(node.Text("name"));
    if (variable == nullptr || variable->list != nullptr) return nullptr;
  }
  Entry entry{.block = loop.id, .left = &CompiledFor(speculation.graph)};
  entry.history = FoldHash(compiler_.FirstHistory(loop.id), std::string_view("ahead"));
  const Result<CompiledPart*> found_part = FindPart(&entry, frame);
  // What cannot be inferred or has to wait for a size is the predicate's error, or one that is never met.
  const bool is_whole = found_part.ok() && (*found_part)->rest().graph().nodes.empty();
  speculation.is_refused = !is_whole && (found_part.ok() || found_part.status().is_on_every_rank());
  if (speculation.is_refused) return nullptr;
  HEDDLE_RETURN_IF_ERROR(found_part.status());
  const CompiledPart* const part = *found_part;
  const auto make = [&] {
    return WithinMemory("a plan", [&]() -> Result<Plan> {
      HEDDLE_ASSIGN_OR_RETURN(Plan plan, compiler_.MakePlan(part->graph(), *frame, {}, speculation.boundary));
      if (!IsWorthwhile(plan)) return FailedPrecondition("it is better to wait for the predicate");
      return plan;
    });
  };
  guard_.AddPlan(loop.id, part->key());
  const Result<std::shared_ptr<const Plan>> plan = ObtainPlan(part->key(), make);
  if (!plan.ok() && plan.status().is_on_every_rank()) {
    speculation.is_refused = true;
    return nullptr;
  }
  HEDDLE_RETURN_IF_ERROR(plan.status());
  HEDDLE_RETURN_IF_ERROR(RunObtained(loop.id, *plan, frame));
  return &speculation;
}

void BlockRunner::Adopt(const Speculation& speculation, VariableTable* frame) {
  for (const auto& [name, temporary] : speculation.assigned) {
    frame->Set(name, std::move(*frame->FindMutable(temporary)));
    frame->Erase(temporary);
  }
}

void BlockRunner::Discard(const Speculation& speculation, VariableTable* frame) {
  for (const auto& [name, temporary] : speculation.assigned) frame->Erase(temporary);
}

Status BlockRunner::RunByPlan(int32_t block, uint64_t key, const PlanMaker& make, VariableTable* frame) {
  guard_.AddPlan(block, key);
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const Plan> plan, ObtainPlan(key, make));
  return RunObtained(block, plan, frame);
}

Status BlockRunner::RunObtained(int32_t block, const std::shared_ptr<const Plan>& plan,
                                VariableTable* frame) {
  std::map<std::string, Value> live_in;
  HEDDLE_RETURN_IF_ERROR(MakeRoomOnDevice(*plan, frame));
  HEDDLE_RETURN_IF_ERROR(
      WithinMemory("variables", [&] { return TakeLiveIns(block, *plan, frame, &live_in); }));
  Result<actor::RunResult> result = RunPlan(plan, std::move(live_in));
  plan_end_ = result.ok()                                   ? PlanEnd::kWell
              : shared_.runtime().HasFailedElsewhere(lane_) ? PlanEnd::kFailedElsewhere
                                                            : PlanEnd::kFailed;
  // Of a plan ranks may know different causes, whatever they are elsewhere.
  HEDDLE_RETURN_IF_ERROR(result.status().OnThisRank());
  counts_.Add(plan, result->statistics, calls_);
  return SetLiveOuts(*plan, *std::move(result), frame);
}

Result<std::shared_ptr<const Plan>> BlockRunner::ObtainPlan(uint64_t key, const PlanMaker& make) {
  bool is_new = false;
  Recorder* const recorder = environment_.recorder;
  const int64_t begin_ns = recorder != nullptr ? recorder->clock().MonotonicNs() : 0;
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, plans().Obtain(key, guard_, make, &is_new));
  if (!is_new) return plan;
  if (recorder != nullptr) {
    const SourcePosition& position = plan->graph.nodes.front().position;
    const uint32_t site = recorder->SiteOf({.kind = RecordedKind::kPlanning,
                                            .name = "plan",
                                            .file = position.file,
                                            .line = position.line,
                                            .column = position.column});
    recorder->Add(thread_name_, site, begin_ns, recorder->clock().MonotonicNs());
  }
  shared_.Show(*plan);
  return plan;
}

Result<actor::RunResult> BlockRunner::RunPlan(const std::shared_ptr<const Plan>& plan,
                                              std::map<std::string, Value> live_in) {
  const scheduler::MemoryOfPlan& planned = PlannedMemoryOf(*plan);
  const int64_t needed = SaturatingSum(planned.values, planned.in_transit);
  const int64_t read = BytesOfMatrices(live_in);
  HEDDLE_RETURN_IF_ERROR(MakeRoom(planned, read));
  const InFlight in_flight(shared_.planned_in_flight(), needed);
  NotePlannedMemory(in_flight.all_bytes(), planned.panels, read);
  const uint32_t run = actor::MakeRun(lane_, ++runs_);
  Recorder* const recorder = environment_.recorder;
  if (recorder == nullptr) return shared_.runtime().Run(plan, run, std::move(live_in));
  const int64_t begin_ns = recorder->clock().MonotonicNs();
  Result<actor::RunResult> result = shared_.runtime().Run(plan, run, std::move(live_in));
  const int64_t ns = recorder->clock().MonotonicNs() - begin_ns;
  if (result.ok()) shared_.plan_records().Add(*plan, ns, result->statistics, compiler_.TakeChoices());
  return result;
}

void BlockRunner::Leave(const Status& why) {
  if (options_.ranks == 1) return;
  shared_.runtime().Leave(actor::MakeRun(lane_, runs_ + 1), static_cast<uint32_t>(options_.ranks), why);
}

namespace {

// Whether a live-out is a copy of a live-in, in another memory.
bool IsCopy(const Plan& plan, const Binding& live_out) {
  return live_out.node != kNoNode && plan.graph[live_out.node].Is("variable");
}

}  // namespace

Status BlockRunner::TakeLiveIns(int32_t block, const Plan& plan, VariableTable* frame,
                                std::map<std::string, Value>* live_in) {
  std::set<std::string> replaced;
  for (const Binding& binding : plan.live_in) {
    Variable* const variable = frame->FindMutable(binding.variable);
    if (variable == nullptr)
      return Internal("a plan of block {} reads {}, which has no value", block, binding.variable);
    // Of plans in panels, which are the processor's.
    if (binding.device.IsHost() && !variable->residence.on_host)
      HEDDLE_RETURN_IF_ERROR(BringToHost(variable));
    if (!variable->IsHeldBy(options_.rank)) continue;
    const bool is_replaced = std::any_of(plan.live_out.begin(), plan.live_out.end(), [&](const Binding& out) {
      return out.variable == binding.variable && !IsCopy(plan, out);
    });
    const bool is_copy = !binding.device.IsHost() && variable->residence.on_host;
    const std::string name = binding.device.IsHost() ? binding.variable : NameOnDevice(binding.variable);
    live_in->emplace(name, is_copy ? variable->on_device : variable->value);
    if (is_replaced) replaced.insert(binding.variable);
  }
  // They are the plan's alone: it may overwrite them.
  for (const std::string& name : replaced) frame->Erase(name);
  return OkStatus();
}

// The copy that a plan has made of a variable which it reads, in the memory where the variable was not.
void BlockRunner::KeepCopy(const Binding& binding, actor::RunResult* result, VariableTable* frame) const {
  Variable* const variable = frame->FindMutable(binding.variable);
  if (variable == nullptr) return;
  const bool is_there = !binding.device.IsHost();
  variable->residence = {.on_host = true, .on_device = true};
  if (!variable->IsHeldBy(options_.rank)) return;
  Value& copy = result->live_out[is_there ? NameOnDevice(binding.variable) : binding.variable];
  if (!is_there) variable->on_device = std::exchange(variable->value, Value());
  (is_there ? variable->on_device : variable->value) = std::move(copy);
}

Status BlockRunner::SetLiveOuts(const Plan& plan, actor::RunResult result, VariableTable* frame) {
  const std::vector<NodeId> panels = scheduler::AssignsOfPanels(plan);
  const std::vector<std::shared_ptr<const Source>> sources = SourcesOf(plan, *frame);
  for (size_t i = 0; i < plan.live_out.size(); ++i) {
    const Binding& binding = plan.live_out[i];
    if (IsCopy(plan, binding)) {
      KeepCopy(binding, &result, frame);
      continue;
    }
    Variable variable;
    if (!sources.empty()) variable.source = sources[i];
    variable.is_panels = std::find(panels.begin(), panels.end(), binding.node) != panels.end();
    variable.distribution = binding.distribution;
    variable.info = binding.info;
    variable.residence = {.on_host = binding.device.IsHost(), .on_device = !binding.device.IsHost()};
    if (auto found = result.sizes.find(binding.variable); found != result.sizes.end()) {
      variable.info = found->second.info;
      if (variable.distribution.IsSplit()) variable.distribution.split.cuts = std::move(found->second.cuts);
    }
    if (variable.IsHeldBy(options_.rank)) {
      auto found = result.live_out.find(binding.device.IsHost() ? binding.variable
                                                                : NameOnDevice(binding.variable));
      if (found == result.live_out.end())
        return Internal("a plan ended without a value for {}", binding.variable);
      variable.value = std::move(found->second);
      if (options_.ranks == 1) HEDDLE_RETURN_IF_ERROR(KeepWhereSmall(&variable));
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

// None where nobody takes states.
std::vector<std::shared_ptr<const Source>> BlockRunner::SourcesOf(const Plan& plan,
                                                                  const VariableTable& frame) const {
  std::vector<std::shared_ptr<const Source>> sources;
  if (shared_.sources() == nullptr) return sources;
  for (const Binding& binding : plan.live_out) {
    std::string same;
    const bool is_assigned = binding.node != kNoNode && !IsCopy(plan, binding);
    sources.push_back(is_assigned ? shared_.sources()->Of(plan.graph, binding.node, &same) : nullptr);
    const Variable* const variable = same.empty() ? nullptr : frame.Find(same);
    if (variable != nullptr) sources.back() = variable->source;
  }
  return sources;
}

Status BlockRunner::RunSource(const std::shared_ptr<const Source>& source, uint64_t number,
                              VariableTable* frame) {
  ops::FileVersions* const versions =
      environment_.files == nullptr ? nullptr : environment_.files->versions();
  if (options_.rank == 0 && !source->path.empty() && versions != nullptr) {
    const ops::FileVersion now = versions->Find(source->path);
    if (!now.IsSame(source->version))
      return Aborted("'{}' has changed since it was read: it was {}, and is {}", source->path,
                     source->version.Describe(), now.Describe())
          .WithNote("what goes on from a checkpoint would mix results of both");
  }
  sources_.push_back(source);  // Compiled graphs are known by their address.
  return Run(kSource, source->graph, frame, number);
}

void BlockRunner::Absorb(const BlockRunner& other) {
  statistics_.Add(other.statistics_);
  if (&shared_ != &other.shared_) shared_.plan_records().Absorb(other.shared_.plan_records());
  statistics_.planning_ns += other.compiler_.planning_ns();
  statistics_.fusion_ns += other.compiler_.fusion_ns();
  statistics_.fusion_costed += other.compiler_.fusion_costed();
}

}  // namespace heddle::engine
