// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actor/runtime.h"
#include "engine/blocks/block_compiler.h"
#include "engine/blocks/compiled_block.h"
#include "engine/blocks/open_calls.h"
#include "engine/blocks/scalar_program.h"
#include "engine/blocks/session_runtime.h"
#include "engine/blocks/speculation.h"
#include "engine/blocks/task_counts.h"
#include "engine/recursion/graph_runner.h"
#include "engine/session/session.h"
#include "engine/variables/bytes_beside.h"
#include "engine/variables/divergence_guard.h"
#include "engine/variables/random_seeds.h"
#include "engine/variables/variables.h"
#include "ops/base/parallel.h"
#include "scheduler/memory_of_plan.h"

namespace heddle::engine {

/// Runs the graph of one block on this rank, by the first way that can (docs/architecture.md, "How a block
/// runs"): in place, when it is scalar arithmetic; directly, when it is small; else by a plan made for the
/// exact sizes of its variables. A block of which a run has to tell some sizes runs part by part, each part
/// by a way of its own.
class BlockRunner : public GraphRunner {
 public:
  /// All but `lane` outlive the runner. Runs of plans are in `lane`, with the seeds of `seeds`.
  BlockRunner(const SessionOptions& options, const SessionEnvironment& environment,
              ops::KernelContext& context, SessionRuntime& shared, RandomSeeds seeds, uint32_t lane = 0);

  /// Adds the plans that came with the job.
  Status AddPlans();
  /// Reads the variables that `graph` names from `frame` and sets those it assigns. Errors carry their place.
  /// The graph stays where it is as long as the runner lives. A block with several graphs that differ in more
  /// than their inputs gives each a number, so that none gets another's plan.
  Status Run(int32_t block, const Graph& graph, VariableTable* frame, uint64_t variant = 0);
  /// The loops around the blocks that run next.
  void SetLoops(OpenLoops loops) { compiler_.set_loops(std::move(loops)); }
  Status Exchange(const std::map<std::string, Distribution>& wanted, VariableTable* frame) override;
  /// The value of a predicate that is scalar arithmetic, valid until the next call; nullptr where Run has to
  /// find it.
  Result<const Scalar*> Decide(const Graph& graph, const VariableTable& frame);
  /// Runs the predicate of a loop, as Run would, and with it the first block of its body, the results of
  /// which wait for Adopt or Discard. nullptr, and nothing has happened, where that is not to be done.
  Result<Speculation*> RunAhead(const Block& loop, VariableTable* frame);
  /// The first block of the body has run / has not.
  void Adopt(const Speculation& speculation, VariableTable* frame);
  void Discard(const Speculation& speculation, VariableTable* frame);
  /// Variables whose cells are here, because they grow, get their values; before anybody else reads the
  /// variables of a frame, or ends it.
  Status Settle() { return grown_.empty() ? OkStatus() : SettleGrown(); }
  /// Makes a value of its source again, as the variable Source::kVariable of `frame`. All ranks make the same
  /// ones in the same order; `number` tells them apart. kAborted when the file has changed.
  Status RunSource(const std::shared_ptr<const Source>& source, uint64_t number, VariableTable* frame);
  /// Values that are panels or on a device come into memory, of variables that something else than a plan
  /// reads: of those
  /// that a step on lists or a parfor reads or writes itself, of a whole frame.
  /// kResourceExhausted when they do not fit.
  Status PutTogether(const Block& step, VariableTable* frame);
  Status PutTogether(VariableTable* frame);
  /// The cells of all variables of a frame are in the memory of the host, and not on a device any more.
  Status BringToHost(VariableTable* frame);
  /// Panels that are kept leave where what is needed beside them would have no room; `in_use`: bytes of it
  /// that are in use already. Fails as PanelStore::SetRoom does.
  Status MakeRoom(const scheduler::MemoryOfPlan& needed, int64_t in_use = 0);
  Status RunForAll(int32_t block, const Graph& graph, uint64_t history,
                   const std::vector<std::string>& wanted, VariableTable* frame) override;
  Result<std::string> Share(uint64_t key, const std::function<std::string()>& make) override {
    return plans().Share(key, guard_, make);
  }
  /// Those variables are gone, their frame has failed.
  void ForgetGrown() { grown_.Clear(); }
  /// Whether variables may be panels when the session has ended.
  bool leaves_panels() const { return environment_.panels != nullptr; }
  DivergenceGuard& guard() { return guard_; }
  RandomSeeds& seeds() { return seeds_; }
  /// Tells the other ranks that this one has failed, and takes part in no plan any more: those that come to
  /// the next one end with `why`.
  void Leave(const Status& why);
  /// How the last plan ended. A failure in it is met by every rank; one elsewhere another rank has met
  /// before, and only that one knows the calls on the way to it.
  enum class PlanEnd : uint8_t { kWell, kFailed, kFailedElsewhere };
  PlanEnd plan_end() const { return plan_end_; }
  /// Adds what another runner of the session did to the statistics of this one. Once, at its end.
  void Absorb(const BlockRunner& other);
  PlanCache& plans() { return shared_.plans(); }
  RecursionKernels& recursions() override { return shared_.recursions(); }
  const BlockCompiler& compiler() const { return compiler_; }
  SessionStatistics& statistics() { return statistics_; }
  /// Where the run is recorded; nullptr: nowhere.
  Recorder* recorder() const { return environment_.recorder; }
  /// Where the run says what it is at; nullptr: nowhere, and in lanes beside the first.
  ProgressBoard* progress() const { return progress_; }
  /// What records call the thread of this lane.
  const std::string& thread_name() const { return thread_name_; }
  /// The calls that are open where its blocks run. Not nullptr where there is a recorder.
  const OpenCalls& calls() const { return calls_; }
  void set_calls(OpenCalls calls) { calls_ = std::move(calls); }
  /// The variables of the calls that are open, while a program runs: they outlive the next call. Returns
  /// those of before; nullptr: none.
  const OpenFrames* set_frames(const OpenFrames* frames) { return std::exchange(frames_, frames); }
  const SessionStatistics& statistics() const { return statistics_; }

 private:
  // One entry of a block: what is left of it, and how it got there.
  struct Entry {
    int32_t block = 0;
    CompiledBlock* left = nullptr;
    uint64_t history = 0;
    int part_number = 0;
    std::vector<std::unique_ptr<CompiledPart>> single_use;  ///< Parts that no compiled block has.
    std::vector<std::string> temporaries;                   ///< Of the parts so far.
  };
  using PlanMaker = std::function<Result<Plan>()>;

  // What is in use on a rank that a plan of the graph does not read.
  int64_t BytesBeside(const Graph& graph, const VariableTable& frame) const;

  CompiledBlock& CompiledFor(const Graph& graph);
  Status RunBlock(int32_t block, const Graph& graph, uint64_t variant, VariableTable* frame);
  // The parts of a block that has not run in place.
  Status RunParts(Entry* entry, VariableTable* frame);
  Status SettleGrown();
  // The three ways. In place: false where the graph needs more.
  Result<bool> RunInPlace(CompiledBlock* block, VariableTable* frame);
  Status RunDirectly(DirectProgram* program, VariableTable* frame);
  Status RunByPlan(int32_t block, uint64_t key, const PlanMaker& make, VariableTable* frame);
  Status RunObtained(int32_t block, const std::shared_ptr<const Plan>& plan, VariableTable* frame);
  Result<std::shared_ptr<const Plan>> ObtainPlan(uint64_t key, const PlanMaker& make);
  Result<actor::RunResult> RunPlan(const std::shared_ptr<const Plan>& plan,
                                   std::map<std::string, Value> live_in);
  const scheduler::MemoryOfPlan& PlannedMemoryOf(const Plan& plan);
  // The same, with a limit of memory or without.
  Status MakeRoomBeside(const scheduler::MemoryOfPlan& needed, int64_t in_use);
  Status SetRoom(int64_t bytes);
  // What plans that run say that they take; of one, as long as it lives.
  class InFlight {
   public:
    InFlight(std::atomic<int64_t>& all, int64_t bytes) : all_(all), bytes_(bytes), all_bytes_(all += bytes) {}
    ~InFlight() { all_ -= bytes_; }
    InFlight(const InFlight&) = delete;
    InFlight& operator=(const InFlight&) = delete;
    int64_t all_bytes() const { return all_bytes_; }

   private:
    std::atomic<int64_t>& all_;
    const int64_t bytes_, all_bytes_;
  };
  // Notes what the plans that run, and all that is alive beside them, may take of the pool of blocks.
  // `read_bytes`: of what is in use, what the plan counts as well.
  void NotePlannedMemory(int64_t planned_bytes, int64_t panel_bytes, int64_t read_bytes);
  Status PutTogether(Variable* variable);
  // Variables that the plan does not read leave the device whose memory has no room for both.
  Status MakeRoomOnDevice(const Plan& plan, VariableTable* frame);
  // The cells of a variable are in the memory of the host, and not on a device any more.
  Status BringToHost(Variable* variable);
  // With which part the rest of the block begins, compiled before or now.
  Result<CompiledPart*> FindPart(Entry* entry, VariableTable* frame);
  Result<CompiledPart*> CompilePart(Entry* entry, VariableTable* frame);
  void ShowDirect(const CompiledPart& part);
  // At the files that a graph reads, as rank 0 tells it: from then on this rank sees those versions.
  Result<FileLook> Look(uint64_t history, const Graph& rest, const VariableTable& frame);
  // All ranks look at shares of the file of a read. Then each of them knows its size.
  Status ShareLook(const Node& read, const std::string& path);
  Status TakeLiveIns(int32_t block, const Plan& plan, VariableTable* frame,
                     std::map<std::string, Value>* live_in);
  Status KeepWhereSmall(Variable* variable);
  std::vector<std::shared_ptr<const Source>> SourcesOf(const Plan& plan, const VariableTable& frame) const;
  void KeepCopy(const Binding& binding, actor::RunResult* result, VariableTable* frame) const;
  Status SetLiveOuts(const Plan& plan, actor::RunResult result, VariableTable* frame);

  const SessionOptions& options_;
  const SessionEnvironment& environment_;
  SessionRuntime& shared_;
  ops::KernelContext& context_;
  const bool runs_directly_;
  std::unordered_map<const Graph*, CompiledBlock> compiled_;
  std::unordered_map<const Block*, std::optional<Speculation>> speculations_;  ///< By loop.
  std::unique_ptr<ops::Arena> one_thread_;                                     ///< Of direct parts.
  GrownColumns grown_;
  std::vector<std::shared_ptr<const Source>> sources_;  ///< Whose graphs have run.
  ScalarEvaluator scalars_;
  RandomSeeds seeds_;
  DivergenceGuard guard_;
  BlockCompiler compiler_;
  SessionStatistics statistics_;
  TaskCounts counts_;
  const uint32_t lane_;
  ProgressBoard* const progress_;
  const std::string thread_name_;
  OpenCalls calls_;
  const OpenFrames* frames_ = nullptr;
  uint32_t runs_ = 0;  // in the lane
  PlanEnd plan_end_ = PlanEnd::kWell;
  int64_t room_ = INT64_MAX;                                              // Of panels that are kept.
  std::unordered_map<uint64_t, scheduler::MemoryOfPlan> planned_memory_;  // By the key of a plan.
};

}  // namespace heddle::engine
