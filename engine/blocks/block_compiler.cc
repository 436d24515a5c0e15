// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/block_compiler.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/fuse/fuse.h"
#include "compiler/optimize/pass.h"
#include "core/hash.h"
#include "engine/blocks/graph_cut.h"
#include "engine/blocks/speculation.h"
#include "engine/devices/memory_on_device.h"
#include "engine/machine/machine_constants.h"
#include "engine/session/planning.h"
#include "engine/variables/live_in.h"
#include "ops/base/operator.h"
#include "ops/io/formats/read_stages.h"
#include "ops/panels/entry_counts.h"
#include "ops/panels/panel_store.h"
#include "scheduler/memory_of_plan.h"
#include "scheduler/plan_memory.h"
#include "scheduler/schedule.h"

namespace heddle::engine {
namespace {

constexpr size_t kReportedPlans = 8;  // The cheapest of them are told in a record.

// The variables that `graph` reads. One that is missing stays missing: inference names it in its error.
compiler::LiveIns LiveInsOf(const Graph& graph, const VariableTable& frame) {
  compiler::LiveIns live_in;
  for (const Node& node : graph.nodes) {
    if (!node.Is("variable")) continue;
    const std::string& name = node.Text("name");
    if (const Variable* variable = frame.Find(name)) live_in[name] = LiveInOf(*variable);
  }
  return live_in;
}

// Types that are the same one after the other count together, and no text is made: a frame may have millions
// of columns.
uint64_t FoldSchema(uint64_t hash, const Schema& schema) {
  for (size_t begin = 0; begin < schema.types.size();) {
    size_t end = begin + 1;
    while (end < schema.types.size() && schema.types[end] == schema.types[begin]) ++end;
    hash = FoldHash(FoldHash(hash, static_cast<uint64_t>(schema.types[begin])), end - begin);
    begin = end;
  }
  for (const std::string& name : schema.names) hash = FoldHash(hash, name);
  return FoldHash(hash, schema.names.size());
}

uint64_t FoldInfo(uint64_t hash, const ValueInfo& info) {
  const uint64_t kind = static_cast<uint64_t>(info.data_type) << 16 |
                        static_cast<uint64_t>(info.value_type) << 8 |
                        static_cast<uint64_t>(info.element_type) << 4 | static_cast<uint64_t>(info.format);
  hash = FoldHash(hash, kind);
  if (!info.IsTabular()) return hash;
  hash = FoldHash(FoldHash(hash, static_cast<uint64_t>(info.shape.rows)),
                  static_cast<uint64_t>(info.shape.columns));
  return info.schema == nullptr ? hash : FoldSchema(hash, *info.schema);
}

uint64_t FoldDistribution(uint64_t hash, const Distribution& distribution) {
  hash = FoldHash(hash, static_cast<uint64_t>(distribution.kind));
  if (distribution.IsOne()) return FoldHash(hash, static_cast<uint64_t>(distribution.rank));
  if (!distribution.IsSplit()) return hash;
  hash = FoldHash(hash, static_cast<uint64_t>(distribution.split.axis));
  for (const int64_t cut : distribution.split.cuts) hash = FoldHash(hash, static_cast<uint64_t>(cut));
  return hash;
}

// The share of the cells of a matrix that are stored; of a split one, of this rank's rows. nullopt where this
// rank has no cells to count.
std::optional<double> SparsityOf(const Variable* variable) {
  if (variable == nullptr || variable->is_placeholder || !variable->value.IsMatrix() ||
      variable->distribution.kind == Distribution::Kind::kPartial)
    return std::nullopt;
  const Matrix& matrix = variable->value.matrix();
  if (matrix.cells() == 0 && variable->info.shape.Cells() > 0)
    return std::nullopt;  // All rows are elsewhere.
  const int64_t stored = matrix.IsOnDevice() ? matrix.device_cells().stored() : matrix.stored();
  return static_cast<double>(stored) / static_cast<double>(std::max<int64_t>(matrix.cells(), 1));
}

// The last step before placement: nothing it chooses changes a bit. For a plan in panels it goes by what
// several ranks would share out: panels are read by rows as the parts of ranks are. What an operator holds of
// whole values says nothing then.
Result<Graph> FuseGraph(const SessionOptions& session, const Graph& graph, const VariableTable& frame,
                        bool in_panels, Clock* clock, compiler::FuseReport* report) {
  HEDDLE_ASSIGN_OR_RETURN(compiler::FuseOptions options, FuseOptionsOf(session));
  if (in_panels) options.memory_budget = 0;
  if (in_panels && options.ranks == 1) {
    options.ranks = 2;
    options.min_distributed_bytes =
        session.panel_bytes > 0 ? 0 : scheduler::LeastPanelledBytes(MemoryOf(session));
  }
  options.clock = clock;
  if (session.recorded_events > 0) options.reported_plans = kReportedPlans;
  options.sparsity_of = [&](std::string_view name) { return SparsityOf(frame.Find(name)).value_or(-1); };
  options.is_split = [&](std::string_view name) {
    const Variable* variable = frame.Find(std::string(name));
    return variable != nullptr && (variable->distribution.IsSplit() || variable->is_panels);
  };
  return compiler::Fuse(graph, options, report);
}

std::map<std::string, Distribution> DistributionsIn(const Graph& graph, const VariableTable& frame) {
  std::map<std::string, Distribution> distributions;
  for (const Node& node : graph.nodes)
    if (node.Is("variable")) distributions[node.Text("name")] = frame.Find(node.Text("name"))->distribution;
  return distributions;
}

// The variables that are panels.
std::set<std::string> PanelsIn(const Graph& graph, const VariableTable& frame) {
  std::set<std::string> panels;
  for (const Node& node : graph.nodes)
    if (node.Is("variable") && frame.Find(node.Text("name"))->is_panels) panels.insert(node.Text("name"));
  return panels;
}

// How the variables lie that the graph reads: in panels, and in which memory.
void SetLiveIns(const Graph& graph, const VariableTable& frame, const OpenLoops& loops,
                scheduler::ScheduleOptions* options) {
  options->panelled = PanelsIn(graph, frame);
  if (!options->device) return;
  options->device->runs = RunsOf(loops);
  for (const Node& node : graph.nodes) {
    if (!node.Is("variable")) continue;
    const std::string& name = node.Text("name");
    const Residence residence = frame.Find(name)->residence;
    if (!(residence == Residence())) options->device->residences[name] = residence;
    options->device->reads[name] = ReadsOf(name, loops);
  }
}

// Of a CSR variable that is large for the memory of the process, or for that of its device, how many entries
// the panels that are cut from it have at most. On several ranks nobody knows it of all rows.
std::vector<int64_t> MostEntriesOf(const SessionOptions& session, const Variable& variable) {
  const Value& value = variable.value;
  const auto is_large_for = [&](int64_t memory_bytes) {
    return memory_bytes > 0 &&
           (session.panel_bytes > 0 || value.bytes() >= scheduler::LeastPanelledBytes(memory_bytes));
  };
  if (session.ranks > 1 || variable.info.format != Format::kSparse) return {};
  if (value.IsPanels()) return ops::MostEntries(ops::EntriesOf(*value.panels()));
  if (!value.IsMatrix() || (!is_large_for(session.memory_bytes) && !is_large_for(RoomOnDevice(session))))
    return {};
  if (value.matrix().IsOnDevice() && value.matrix().device_cells().IsSparse())
    return ops::MostEntries(value.matrix().device_cells());
  if (!value.matrix().IsSparse()) return {};
  ops::EntryCounts counts(value.matrix().rows());
  counts.Add(value.matrix());
  return ops::MostEntries(counts.Finish());
}

std::map<std::string, std::vector<int64_t>> MostEntriesIn(const SessionOptions& session, const Graph& graph,
                                                          const VariableTable& frame) {
  std::map<std::string, std::vector<int64_t>> most;
  for (const Node& node : graph.nodes) {
    if (!node.Is("variable")) continue;
    std::vector<int64_t> counted = MostEntriesOf(session, *frame.Find(node.Text("name")));
    if (!counted.empty()) most[node.Text("name")] = std::move(counted);
  }
  return most;
}

// An error if an operator of a plan in panels gets a value whole that is worth panels.
Status CheckStreams(const Plan& plan, int64_t least_bytes) {
  for (const Task& task : plan.tasks) {
    if (task.phase != Phase::kGather || task.kind != TaskKind::kCompute || task.node == kNoNode) continue;
    const Register& source = plan.registers[static_cast<size_t>(task.consumed[0])];
    if (source.bytes > 0 || KnownBytes(source.info) <= least_bytes) continue;
    const Node& node = plan.graph[task.node];
    return ResourceExhausted("--require-streaming: '{}' needs a value of {} bytes whole", node.op,
                             KnownBytes(source.info))
        .At(node.position)
        .WithNote("docs/streaming.md tells what runs in panels; without the option it runs where it fits");
  }
  return OkStatus();
}

// Whether the plan needs no more than that on any rank; 0: whatever it needs.
bool Fits(const Result<Plan>& plan, int64_t memory_bytes) {
  if (!plan.ok()) return memory_bytes == 0 || plan.status().code() != StatusCode::kResourceExhausted;
  return memory_bytes == 0 || scheduler::CheckMemory(*plan, memory_bytes).ok();
}

// Whether its values fit even as the pool of blocks rounds them up, those of unknown size as large as may be.
bool FitsInBlocks(const Result<Plan>& plan, int64_t memory_bytes) {
  if (!plan.ok() || memory_bytes == 0) return true;
  // Kernels work with some memory beside values, most of them with little.
  const int64_t room = memory_bytes - memory_bytes / 64;
  const std::vector<int64_t> most = scheduler::MostPoolBytes(*plan);
  return std::all_of(most.begin(), most.end(), [&](int64_t bytes) { return bytes <= room; });
}

// What is left of the memory for a plan; little enough for any plan of scalars where nothing is.
int64_t MemoryBeside(int64_t memory_bytes, int64_t beside) {
  if (memory_bytes == 0) return 0;
  return std::max(memory_bytes - beside, scheduler::LeastPanelledBytes(memory_bytes));
}

// Adds the time of its life to a sum.
class TimeIn {
 public:
  TimeIn(Clock& clock, int64_t* sum) : clock_(clock), sum_(sum), begin_ns_(clock.MonotonicNs()) {}
  ~TimeIn() { *sum_ += clock_.MonotonicNs() - begin_ns_; }
  TimeIn(const TimeIn&) = delete;
  TimeIn& operator=(const TimeIn&) = delete;

 private:
  Clock& clock_;
  int64_t* sum_;
  int64_t begin_ns_;
};

}  // namespace

Result<Graph> RunPasses(const SessionOptions& options, const Graph& graph, bool* sizes_matter) {
  compiler::PassOptions passes;
  passes.infos_are_exact = true;
  passes.disabled.insert(options.disabled_passes.begin(), options.disabled_passes.end());
  passes.sizes_matter = sizes_matter;
  return compiler::RunGraphPasses(graph, passes);
}

BlockCompiler::BlockCompiler(const SessionOptions& options, ops::Files* files, Clock* clock)
    : options_(options), files_(files), clock_(clock) {
  uint64_t hash = FoldHash(1, static_cast<uint64_t>(options.ranks));
  hash = FoldHash(hash, static_cast<uint64_t>(options.min_distributed_bytes));
  hash = FoldHash(hash, static_cast<uint64_t>(options.memory_bytes));
  hash = FoldHash(hash, static_cast<uint64_t>(options.panel_bytes));
  for (const std::string& pass : options.disabled_passes) hash = FoldHash(hash, pass);
  hash = FoldHash(hash, options.fusion);
  hash = FoldHash(hash, options.devices);
  hash = FoldHash(hash, static_cast<uint64_t>(options.element_type));
  // They choose among fused operators. Rates of links are known later, and are those of the whole job.
  ops::MachineConstants constants = options.constants;
  constants.links = {};
  hash = FoldHash(hash, EncodeConstants(constants));
  options_hash_ = hash;
}

uint64_t BlockCompiler::FirstHistory(int32_t block) const {
  return FoldHash(options_hash_, static_cast<uint64_t>(block));
}

FileLook BlockCompiler::LookAt(const Graph& rest, const VariableTable& frame) const {
  return LookAtFiles(rest, LiveInsOf(rest, frame), files_);
}

uint64_t BlockCompiler::HistoryOf(uint64_t history, const FileLook& look) {
  return look.waiting.empty() ? history : FoldHash(history, static_cast<uint64_t>(*look.waiting.begin()) + 1);
}

Result<BlockPart> BlockCompiler::NextPart(int32_t block, Graph rest, const VariableTable& frame, int part,
                                          const FileLook& look) {
  const compiler::LiveIns live_in = LiveInsOf(rest, frame);
  compiler::InferOutcome inferred =
      compiler::InferShapes(std::move(rest), live_in, files_, nullptr, options_.element_type, &look.waiting);
  if (options_.ranks > 1 && files_ != nullptr)
    MarkSendingReads(inferred.values, options_.ranks, options_.min_distributed_bytes, options_.memory_bytes,
                     *files_, &inferred.graph);
  BlockPart result;
  result.complete = inferred.complete;
  result.error = inferred.error;
  if (inferred.complete) {
    result.graph = std::move(inferred.graph);
    result.values = std::move(inferred.values);
    return result;
  }
  Cut cut = CutGraph(inferred, part);
  if (cut.first.nodes.empty()) {
    if (!inferred.error.ok()) {
      // Sizes and scalars are the same on every rank. What one sees of a file is its own.
      const ops::Operator* const failed = ops::FindOperator(inferred.graph[inferred.failed].op);
      return failed != nullptr && failed->files ? inferred.error : inferred.error.OnEveryRank();
    }
    // A text that is too long to be kept among what is known.
    if (inferred.waiting != kNoNode)
      return NotFound("read: the path is longer than that of any file")
          .OnEveryRank()
          .At(inferred.graph[inferred.waiting].position);
    return Internal("block {} waits for sizes that nothing tells", block);
  }
  result.graph = std::move(cut.first);
  result.rest = std::move(cut.rest);
  result.temporaries = std::move(cut.temporaries);
  return result;
}

uint64_t BlockCompiler::KeyOf(uint64_t history, const Graph& graph, const VariableTable& frame) const {
  uint64_t hash = FoldHash(history, graph.nodes.size());
  for (const Node& node : graph.nodes) {
    hash = FoldInfo(hash, node.info);
    for (const ValueInfo& result : node.results) hash = FoldInfo(hash, result);
    if (ops::HasRole(node, ops::Role::kRead) && ops::SendsCells(node))
      hash = FoldHash(hash, ops::kSendsCells);
    if (!node.Is("variable")) continue;
    const Variable* variable = frame.Find(node.Text("name"));
    const Residence residence = variable->residence;
    hash = FoldHash(FoldDistribution(hash, variable->distribution),
                    uint64_t{variable->is_panels} | uint64_t{residence.on_host} << 1 |
                        uint64_t{residence.on_device} << 2);
    for (const int64_t entries : MostEntriesOf(options_, *variable))
      hash = FoldHash(hash, static_cast<uint64_t>(entries));
  }
  return hash == 0 ? 1 : hash;
}

uint64_t BlockCompiler::KeyBeside(uint64_t key, int64_t beside) {
  return beside == 0 ? key : FoldHash(key, static_cast<uint64_t>(beside)) | 1;
}

Result<Plan> BlockCompiler::MakePlan(const Graph& graph, const VariableTable& frame,
                                     const std::map<std::string, Distribution>& wanted, NodeId boundary,
                                     int64_t beside) {
  const TimeIn planning(*clock_, &planning_ns_);
  const auto [first, second] = Parted(graph, boundary);
  HEDDLE_ASSIGN_OR_RETURN(Graph optimized, RunPasses(options_, second));
  if (boundary > 0) {
    HEDDLE_ASSIGN_OR_RETURN(Graph optimized_first, RunPasses(options_, first));
    optimized = Joined(std::move(optimized_first), optimized);
  }
  compiler::InferOutcome inferred = compiler::InferShapes(std::move(optimized), LiveInsOf(graph, frame),
                                                          files_, nullptr, options_.element_type);
  HEDDLE_RETURN_IF_ERROR(inferred.error);

  compiler::FuseReport report;
  scheduler::ScheduleOptions options = ScheduleOptionsOf(options_);
  const int64_t memory = MemoryBeside(MemoryOf(options_), beside);
  if (options.memory_bytes > 0) options.memory_bytes = memory;
  options.live_out = wanted;
  SetLiveIns(inferred.graph, frame, loops_, &options);
  const auto make = [&](bool in_panels) -> Result<Plan> {
    report = {};
    const auto fuse = [&] {
      const TimeIn choosing(*clock_, &fusion_ns_);
      return FuseGraph(options_, inferred.graph, frame, in_panels, clock_, &report);
    };
    HEDDLE_ASSIGN_OR_RETURN(const Graph fused, fuse());
    fusion_costed_ += compiler::CostedPlans(report);
    options.in_panels = in_panels;
    if (in_panels || options.device) options.most_entries = MostEntriesIn(options_, fused, frame);
    return scheduler::Schedule(fused, DistributionsIn(fused, frame), options);
  };
  const bool must_be_in_panels = !options.panelled.empty() || options_.panel_bytes > 0;
  const auto make_fitting = [&]() -> Result<Plan> {
    if (must_be_in_panels) options.memory_bytes = memory;
    Result<Plan> plan = make(must_be_in_panels);
    const bool fits = Fits(plan, memory);
    if (must_be_in_panels || (fits && FitsInBlocks(plan, memory))) return plan;
    options.memory_bytes = memory;
    compiler::FuseReport report_of_whole = std::move(report);
    Result<Plan> in_panels = make(true);
    // Without a limit that the user has set, what does not fit even so is tried: plans count the most that it
    // can take.
    if (in_panels.ok() || (!fits && (options_.memory_bytes > 0 || options_.require_streaming)))
      return in_panels;
    report = std::move(report_of_whole);
    return plan;
  };
  const int64_t memory_of_whole = options.memory_bytes;
  Result<Plan> plan = make_fitting();
  // A device whose memory is the processor's has values beside those that they are copies of.
  if (plan.status().code() == StatusCode::kResourceExhausted && options.device &&
      options.device->description.is_host) {
    options.device.reset();
    options.memory_bytes = memory_of_whole;
    plan = make_fitting();
  }
  if (options_.recorded_events > 0 && !report.partitions.empty())
    choices_ = compiler::ToText(report, /*with_costs=*/true);
  if (plan.status().code() == StatusCode::kResourceExhausted && beside > 0)
    return plan.status().WithNote(fmt::format(
        "of {} bytes of memory, variables that it does not read take {}", MemoryOf(options_), beside));
  const int64_t least_bytes =
      options_.panel_bytes > 0 ? options_.panel_bytes : scheduler::LeastPanelledBytes(MemoryOf(options_));
  if (plan.ok() && options_.require_streaming) HEDDLE_RETURN_IF_ERROR(CheckStreams(*plan, least_bytes));
  if (plan.ok()) SetDeviceRoom(options_, &*plan);
  return plan;
}

Result<Plan> BlockCompiler::MakeExchange(const Graph& graph,
                                         const std::map<std::string, Distribution>& wanted,
                                         const VariableTable& frame) const {
  scheduler::ScheduleOptions options = ScheduleOptionsOf(options_);
  options.live_out = wanted;
  SetLiveIns(graph, frame, {}, &options);
  options.in_panels = !options.panelled.empty();
  if (options.in_panels) options.memory_bytes = MemoryOf(options_);
  options.leaves_panels = false;  // What asks for it is no plan.
  HEDDLE_ASSIGN_OR_RETURN(Plan plan, scheduler::Schedule(graph, DistributionsIn(graph, frame), options));
  SetDeviceRoom(options_, &plan);
  return plan;
}

}  // namespace heddle::engine
