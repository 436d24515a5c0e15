// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/fused.h"

#include <algorithm>
#include <atomic>
#include <tuple>

#include "core/environment/clock.h"
#include "core/programs/input_infos.h"
#include "ops/base/stages.h"
#include "ops/catalog.h"
#include "ops/cells/stored_inputs.h"
#include "ops/fused/fused_columns.h"
#include "ops/fused/program/region_walk.h"
#include "ops/fused/program/tile_program.h"
#include "ops/fused/run/run_dictionaries.h"
#include "ops/fused/run/run_tiles.h"
#include "ops/fused/run/tile_inputs.h"
#include "ops/fused/run_operators.h"

namespace heddle::ops {
namespace {

std::string LabelOf(const FusedOperator& fused) {
  std::string label = NameOf(fused);
  for (NodeId root : fused.roots)
    if (const SourcePosition& position = fused.body[root].position; position.IsKnown())
      label += " " + ShortPlace(position);
  return label;
}

void Add(int64_t calls, int64_t nanoseconds, int64_t bytes, FusedCounts* counts) {
  counts->calls += calls;
  counts->nanoseconds += nanoseconds;
  counts->bytes += bytes;
}

// What interpreting a node at a cell takes, in additions.
constexpr double kWorkOfFunction = 8;

double WorkOfCell(const Region& region) {
  double work = 0;
  for (const RegionNode& node : region.nodes) work += IsHeavy(node) ? kWorkOfFunction : 1;
  return work;
}

// Of a call, in a region.
double WorkOf(const TileProgram& program, size_t region, const KernelCall& call) {
  if (RunsOnDictionaries(program, call)) return 0;
  const Matrix& driver = call.inputs[static_cast<size_t>(program.fused.driver)]->matrix();
  double cells = 0;
  for (const Step& step : program.steps)
    if (step.kind == Step::Kind::kRegion && static_cast<size_t>(step.index) == region)
      cells += step.by_entries ? static_cast<double>(driver.stored())
                               : static_cast<double>(driver.rows()) * static_cast<double>(step.columns);
  return cells * WorkOfCell(program.regions[region]);
}

}  // namespace

std::string NameOf(const FusedOperator& fused) {
  std::string name(Name(fused.kind));
  for (const NodeId root : fused.roots) name += " " + fused.body[root].op;
  return name;
}

struct FusedRuntime::Entry {
  std::mutex mutex;  ///< Of all but `settled`, and the counts.
  Status status;
  std::shared_ptr<const TileProgram> program;
  /// The program, once no other code will take its place.
  std::atomic<const TileProgram*> settled = nullptr;
  std::vector<size_t> uncompiled;  ///< Regions that may still be compiled.
  std::vector<size_t> hashes;      ///< Of the texts of all regions.
  bool failed = false;             ///< Some could not.

  std::mutex counting;
  FusedCounts counts;
  bool is_forgotten = false;  ///< Its counts are elsewhere; calls that are under way still have it.
};

FusedRuntime::FusedRuntime(std::shared_ptr<RegionSource> source, bool strict,
                           std::function<void(const Status&)> warn, const Processor& processor)
    : source_(std::move(source)), strict_(strict), processor_(processor), warn_(std::move(warn)) {}
FusedRuntime::~FusedRuntime() = default;

std::shared_ptr<FusedRuntime::Entry> FusedRuntime::EntryOf(
    const std::shared_ptr<const FusedOperator>& fused) {
  const std::lock_guard lock(mutex_);
  if (std::shared_ptr<Entry> found = entries_.Find(fused)) return found;
  auto entry = std::make_shared<Entry>();
  entries_.Add(fused, entry, [&](Entry& old) {
    const std::lock_guard counting(old.counting);
    old.is_forgotten = true;
    if (old.counts.calls == 0) return;
    FusedCounts& sum = other_counts_[old.counts.label];
    sum.label = old.counts.label;
    sum.interpreted = old.counts.interpreted;
    Add(old.counts.calls, old.counts.nanoseconds, old.counts.bytes, &sum);
  });
  return entry;
}

Result<std::shared_ptr<const TileProgram>> FusedRuntime::Get(
    const std::shared_ptr<const FusedOperator>& fused, const KernelCall* call) {
  return ProgramOf(EntryOf(fused).get(), *fused, call);
}

Result<std::shared_ptr<const TileProgram>> FusedRuntime::ProgramOf(Entry* entry, const FusedOperator& fused,
                                                                   const KernelCall* call) {
  const std::lock_guard lock(entry->mutex);
  if (entry->program == nullptr && entry->status.ok()) Lower(entry, fused);
  // What joins partial results runs no region.
  const bool runs_regions = call == nullptr || call->phase != Phase::kFinish;
  if (entry->status.ok() && !entry->uncompiled.empty() && runs_regions) entry->status = Compile(entry, call);
  if (!entry->status.ok()) return entry->status;
  if (entry->uncompiled.empty()) entry->settled.store(entry->program.get(), std::memory_order_release);
  return entry->program;
}

void FusedRuntime::Lower(Entry* entry, const FusedOperator& fused) {
  Result<TileProgram> program = ops::Lower(fused, processor_);
  if (!program.ok()) {
    entry->status = program.status();
    return;
  }
  for (size_t i = 0; i < program->regions.size(); ++i) {
    program->codes.push_back(*InterpretedRegions().Compile(program->regions[i]));
    if (source_ == nullptr) continue;
    entry->uncompiled.push_back(i);
    entry->hashes.push_back(std::hash<std::string>()(program->regions[i].ToText()));
  }
  program->interpreted = !entry->uncompiled.empty();
  {
    const std::lock_guard counting(entry->counting);
    entry->counts.label = LabelOf(program->fused);
  }
  entry->program = std::make_shared<const TileProgram>(*std::move(program));
}

Status FusedRuntime::Compile(Entry* entry, const KernelCall* call) {
  std::shared_ptr<TileProgram> program;  // A copy, as others may be running it.
  std::vector<size_t> left;
  for (const size_t i : entry->uncompiled) {
    const Region& region = entry->program->regions[i];
    if (call != nullptr && !strict_ &&
        !IsWorthCompiling(entry->hashes[i], WorkOf(*entry->program, i, *call))) {
      left.push_back(i);
      continue;
    }
    Result<std::shared_ptr<const RegionCode>> code = source_->Compile(region);
    if (code.ok()) {
      if (program == nullptr) program = std::make_shared<TileProgram>(*entry->program);
      program->codes[i] = *std::move(code);
      continue;
    }
    if (strict_) return code.status().WithCode(StatusCode::kFailedPrecondition);
    entry->failed = true;
    const std::lock_guard lock(mutex_);
    if (fallbacks_++ == 0 && warn_) warn_(code.status());
  }
  entry->uncompiled = std::move(left);
  if (program == nullptr) return OkStatus();
  program->interpreted = entry->failed || !entry->uncompiled.empty();
  entry->program = std::move(program);
  return OkStatus();
}

bool FusedRuntime::IsWorthCompiling(size_t region, double work) {
  const std::lock_guard lock(mutex_);
  double* done = work_.Find(region);
  if (done == nullptr) done = &work_.Add(region, 0.0);
  return (*done += work) >= kInterpretedWork;
}

Status FusedRuntime::Run(const KernelCall& call, std::span<Value> results) {
  const std::shared_ptr<Entry> entry = EntryOf(call.node.fused);
  const TileProgram* program = entry->settled.load(std::memory_order_acquire);
  std::shared_ptr<const TileProgram> own;
  if (program == nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(own, ProgramOf(entry.get(), *call.node.fused, &call));
    program = own.get();
  }
  const bool is_timed = call.context.times_operators && call.context.clock != nullptr;
  const int64_t start = is_timed ? call.context.clock->MonotonicNs() : 0;
  const bool is_cut = !RunsOnDictionaries(*program, call) && RunsByOperators(*program, call);
  HEDDLE_RETURN_IF_ERROR(is_cut ? RunByOperators(*program, call, results)
                                : RunTiles(*program, call, results));
  if (call.phase == Phase::kFinish) return OkStatus();
  int64_t bytes = 0;
  for (const Value& result : results)
    if (result.IsMatrix()) bytes += result.matrix().bytes();
  for (const Value* input : call.inputs)
    if (input != nullptr && input->IsMatrix()) bytes += input->matrix().bytes();
  const int64_t nanoseconds = is_timed ? call.context.clock->MonotonicNs() - start : 0;
  {
    const std::lock_guard counting(entry->counting);
    entry->counts.interpreted = program->interpreted;
    if (!entry->is_forgotten) {
      Add(1, nanoseconds, bytes, &entry->counts);
      return OkStatus();
    }
  }
  Record(entry->counts.label, nanoseconds, bytes);
  return OkStatus();
}

Result<std::shared_ptr<const RegionCode>> FusedRuntime::CodeOf(const Region& region, double work) {
  if (source_ == nullptr || (!strict_ && !IsWorthCompiling(std::hash<std::string>()(region.ToText()), work)))
    return std::shared_ptr<const RegionCode>();
  Result<std::shared_ptr<const RegionCode>> code = source_->Compile(region);
  if (code.ok()) return code;
  if (strict_) return code.status().WithCode(StatusCode::kFailedPrecondition);
  const std::lock_guard lock(mutex_);
  if (fallbacks_++ == 0 && warn_) warn_(code.status());
  return InterpretedRegions().Compile(region);
}

void FusedRuntime::Record(const std::string& label, int64_t nanoseconds, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  FusedCounts& counts = other_counts_[label];
  if (counts.calls == 0) counts.label = label;
  Add(1, nanoseconds, bytes, &counts);
}

size_t FusedRuntime::programs() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::vector<FusedCounts> FusedRuntime::Counts() const {
  const std::lock_guard lock(mutex_);
  std::vector<FusedCounts> counts;
  entries_.Each([&](Entry& entry) {
    const std::lock_guard counting(entry.counting);
    if (entry.counts.calls > 0) counts.push_back(entry.counts);
  });
  for (const auto& [label, old] : other_counts_) counts.push_back(old);
  std::sort(counts.begin(), counts.end(), [](const FusedCounts& a, const FusedCounts& b) {
    return std::tie(b.nanoseconds, a.label) < std::tie(a.nanoseconds, b.label);
  });
  return counts;
}

int64_t FusedRuntime::fallbacks() const {
  const std::lock_guard lock(mutex_);
  return fallbacks_;
}

std::string ShortPlace(SourcePosition position) {
  position.file.erase(0, position.file.rfind('/') + 1);
  return position.ToString();
}

FusedRuntime& InterpretedRuntime() {
  static FusedRuntime runtime(nullptr, false, nullptr);
  return runtime;
}

Status CanRunFused(const FusedOperator& fused) { return Lower(fused).status(); }

namespace {

// Inference, placement and cost ask several times for each node while a plan is made.
Result<std::shared_ptr<const TileProgram>> ProgramOf(const Node& node) {
  return InterpretedRuntime().Get(node.fused);
}

Result<ValueInfo> InferFused(const InferContext& context) {
  const FusedOperator& fused = *context.node.fused;
  return fused.body[fused.roots[0]].info;
}

Result<std::vector<ValueInfo>> InferSeveralFused(const InferContext& context) {
  const FusedOperator& fused = *context.node.fused;
  std::vector<ValueInfo> results;
  for (const NodeId root : fused.roots) results.push_back(fused.body[root].info);
  return results;
}

RowRule FusedRowRule(const Node& node, std::span<const ValueInfo>) {
  const auto program = ProgramOf(node);
  if (!program.ok()) return RowRule::kWhole;
  if (!(*program)->roles.reduces) return RowRule::kRowWise;
  return (*program)->fused.kind == FusionTemplate::kStitch ? RowRule::kMixed : RowRule::kReduce;
}

bool FusedReduces(const Node& node, size_t i) {
  const auto program = ProgramOf(node);
  if (!program.ok()) return false;
  const NodeId root = (*program)->fused.roots[i];
  return (*program)->roles.nodes[static_cast<size_t>(root)] == BodyRole::kRoot;
}

InputUse FusedInputUse(const Node& node, std::span<const ValueInfo>, int i) {
  const auto program = ProgramOf(node);
  return program.ok() && (*program)->roles.inputs[static_cast<size_t>(i)] == BodyRole::kRows
             ? InputUse::kRows
             : InputUse::kWhole;
}

// Arithmetic of the whole body; memory of the inputs and the results only.
Cost FusedCost(const Node& node, std::span<const ValueInfo> inputs) {
  Cost cost;
  const auto program = ProgramOf(node);
  if (!program.ok()) return cost;
  const Graph& body = (*program)->fused.body;
  for (const Node& inner : body.nodes) {
    if (inner.Is("variable") || inner.Is("literal")) continue;
    const std::vector<ValueInfo> infos = InputInfos(body, inner);
    cost.work += CostOf(inner, infos).work;
  }
  for (const ValueInfo& input : inputs)
    if (input.IsMatrix() && input.shape.IsKnown())
      cost.bytes += static_cast<double>(BytesOf(input.element_type) * input.shape.Cells());
  for (const ValueInfo& result : ResultsOf(node))
    if (result.IsMatrix() && result.shape.IsKnown())
      cost.bytes += static_cast<double>(BytesOf(result.element_type) * result.shape.Cells());
  return cost;
}

Status RunSeveralFused(const KernelCall& call, std::span<Value> results) {
  return (call.context.fused == nullptr ? InterpretedRuntime() : *call.context.fused).Run(call, results);
}

Result<Value> RunFused(const KernelCall& call) {
  Value result;
  HEDDLE_RETURN_IF_ERROR(RunSeveralFused(call, {&result, 1}));
  return result;
}

// Where dictionaries or codes are enough, or tiles decode the rows of all compressed inputs; else the
// operator runs on decoded pieces.
Result<std::optional<Value>> RunFusedCompressed(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const TileProgram> program, ProgramOf(call.node));
  bool decodes = false;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (program->roles.inputs[i] != BodyRole::kRows || !call.inputs[i]->matrix().IsCompressed()) continue;
    decodes = DecodesRows(*program, i, call.inputs[i]->matrix());
    if (!decodes) break;
  }
  if (!decodes && !RunsOnDictionaries(*program, call) && !RunsByOperators(*program, call))
    return std::optional<Value>();
  HEDDLE_ASSIGN_OR_RETURN(Value result, RunFused(call));
  return std::optional<Value>(std::move(result));
}

// A result that is a reduction, as its own operator finishes it in parts.
struct RootInParts {
  std::shared_ptr<const TileProgram> program;
  const Node* node = nullptr;
  std::vector<ValueInfo> infos;      // Of its inputs.
  const StagedForm* form = nullptr;  // nullptr: it has none.
};

// Several reductions have a list each in a stitch alone.
RootInParts RootInPartsOf(const Node& node, size_t result) {
  RootInParts found;
  const Result<std::shared_ptr<const TileProgram>> program = ProgramOf(node);
  if (!program.ok() || !(*program)->roles.reduces) return found;
  if ((*program)->fused.kind != FusionTemplate::kStitch && (*program)->fused.roots.size() != 1) return found;
  for (const TileRoot& root : (*program)->roots) {
    if (root.of_rows || root.result != static_cast<int>(result)) continue;
    found.program = *program;
    const Graph& body = found.program->fused.body;
    found.node = &body[root.node];
    found.infos = InputInfos(body, *found.node);
    found.form = PartsFormOf(*FindOperator(found.node->op)).second;
  }
  return found;
}

PayloadUnits FusedUnits(const Node& node, std::span<const ValueInfo>, size_t i) {
  const RootInParts root = RootInPartsOf(node, i);
  return root.form == nullptr ? PayloadUnits() : root.form->units(*root.node, root.infos, 0);
}

Status RunPartOfFused(const StageCall& call, std::span<Value> outputs) {
  const RootInParts root = RootInPartsOf(call.node, call.result);
  if (root.form == nullptr) return Internal("fused: a part of no reduction");
  return root.form->run({.form = *root.form,
                         .node = *root.node,
                         .input_infos = root.infos,
                         .stage = call.stage,
                         .rank = call.rank,
                         .rows = call.rows,
                         .result_rows = call.result_rows,
                         .inputs = call.inputs,
                         .received = call.received,
                         .begin = call.begin,
                         .end = call.end,
                         .context = call.context},
                        outputs);
}

constexpr StagedForm kParts = {
    .stages = kReductionStages, .other = &kFusedColumns, .units = FusedUnits, .run = RunPartOfFused};
constexpr StagedForm kPartsOfSeveral = {
    .stages = kReductionStages, .units = FusedUnits, .run = RunPartOfFused};

constexpr Operator kOperators[] = {
    {.name = "fused",
     .parameters = "x",
     .min_inputs = 1,
     .max_inputs = -1,
     .infer = InferFused,
     .row_rule = FusedRowRule,
     .input_use = FusedInputUse,
     .staged = &kParts,
     .cost = FusedCost,
     .run = RunFused,
     .run_compressed = RunFusedCompressed,
     .takes_singles = TakesAnySingles},
    {.name = "fusedSeveral",
     .parameters = "x",
     .min_inputs = 1,
     .max_inputs = -1,
     .results = -1,
     .infer_several = InferSeveralFused,
     .row_rule = FusedRowRule,
     .reduces = FusedReduces,
     .input_use = FusedInputUse,
     .staged = &kPartsOfSeveral,
     .cost = FusedCost,
     .run_several = RunSeveralFused,
     .takes_singles = TakesAnySingles,
     // Rows of compressed inputs are decoded by tiles, or before the first one.
     .storages = kAnyStorage}};

}  // namespace

std::span<const Operator> FusedOperators() { return kOperators; }

}  // namespace heddle::ops
