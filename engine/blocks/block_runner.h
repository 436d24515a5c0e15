// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "actor/runtime.h"
#include "engine/blocks/block_compiler.h"
#include "engine/blocks/known_parts.h"
#include "engine/blocks/scalar_block.h"
#include "engine/blocks/session_runtime.h"
#include "engine/recursion/graph_runner.h"
#include "engine/session/session.h"
#include "engine/variables/divergence_guard.h"
#include "engine/variables/random_seeds.h"
#include "engine/variables/variables.h"
#include "ops/base/parallel.h"

namespace heddle::engine {

/// Runs the graph of one block on this rank: in place when it is scalar arithmetic; part by part, when sizes
/// come to light only on the way, directly where a part is small (known_parts.h), else by a plan made for
/// the exact sizes of its variables.
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
  Status Exchange(const std::map<std::string, Distribution>& wanted, VariableTable* frame) override;
  /// The value of a predicate that is scalar arithmetic, valid until the next call; nullptr where Run has to
  /// find it.
  Result<const Scalar*> Decide(const Graph& graph, const VariableTable& frame);
  /// Variables whose cells are here, because they grow, get their values; before anybody else reads the
  /// variables of a frame, or ends it.
  Status Settle();
  Status RunForAll(int32_t block, const Graph& graph, uint64_t history,
                   const std::vector<std::string>& wanted, VariableTable* frame) override;
  Result<std::string> Share(uint64_t key, const std::function<std::string()>& make) override {
    return plans().Share(key, guard_, make);
  }
  /// Those variables are gone, their frame has failed.
  void ForgetGrown() { grown_.Clear(); }
  DivergenceGuard& guard() { return guard_; }
  RandomSeeds& seeds() { return seeds_; }
  /// True when a block failed while its plan ran: then ranks may know different causes. Every other failure
  /// (sizes, scalars, stop) comes out of the replicated control program and is the same on all ranks.
  bool failed_in_plan() const { return failed_in_plan_; }
  void set_failed_in_plan(bool failed) { failed_in_plan_ = failed; }
  /// Adds what another runner of the session did to the statistics of this one. Once, at its end.
  void Absorb(const BlockRunner& other);
  PlanCache& plans() { return shared_.plans(); }
  RecursionKernels& recursions() override { return shared_.recursions(); }
  const BlockCompiler& compiler() const { return compiler_; }
  SessionStatistics& statistics() { return statistics_; }
  const SessionStatistics& statistics() const { return statistics_; }

 private:
  // What is kept of the graph of a block from one entry to the next.
  struct Known {
    ScalarBlocks::Prepared scalars;
    bool draws = false;  ///< Reads seeds.
    KnownParts parts;
  };
  // What is left of a block, and how it got there.
  struct Rest {
    const Graph* graph = nullptr;
    ScalarBlocks::Prepared* scalars = nullptr;  ///< nullptr: not prepared.
    KnownParts* parts = nullptr;                ///< nullptr: nothing is kept for this place.
    uint64_t history = 0;
    int number = 0;
    Graph own;  ///< What `graph` is, where nobody else keeps it.
  };
  bool failed_in_plan_ = false;
  Known& KnownOf(const Graph& graph);
  Status RunParts(int32_t block, const Graph& graph, uint64_t variant, Known* known, VariableTable* frame);
  // These leave in `rest` what is left then, or an empty graph.
  Result<bool> RunKnownPart(int32_t block, Rest* rest, VariableTable* frame,
                            std::vector<std::string>* temporaries);
  Status RunNewPart(int32_t block, Rest* rest, VariableTable* frame, std::vector<std::string>* temporaries);
  Status RunPart(int32_t block, KnownPart* part, Rest* rest, VariableTable* frame,
                 std::vector<std::string>* temporaries);
  Status RunDirectly(KnownPart* part, VariableTable* frame);
  Result<KnownPart*> KeepPart(const BlockPart& next, uint64_t key, const Rest* rest,
                              const VariableTable& frame);
  // At the files that a graph reads, as rank 0 tells it: from then on this rank sees those versions.
  Result<FileLook> Look(uint64_t history, const Graph& rest, const VariableTable& frame);
  Status RunBlock(int32_t block, const Graph& graph, uint64_t variant, VariableTable* frame);
  /// The plan of `key`, which `make` makes where it is missing.
  Status RunPlan(int32_t block, uint64_t key, const std::function<Result<Plan>()>& make,
                 VariableTable* frame);
  Status TakeLiveIns(int32_t block, const Plan& plan, VariableTable* frame,
                     std::map<std::string, Value>* live_in) const;
  Status Adopt(const Plan& plan, actor::RunResult result, VariableTable* frame);
  // What is counted of each act of a task, the same in all runs of a plan.
  struct TaskFacts {
    OperatorStatistics* counts = nullptr;
    int64_t bytes = 0;  ///< Read and written.
    int64_t rows = 0;   ///< Of the whole result; more than there are of what is a part for sure.
    bool moves_matrices = false;
  };
  struct PlanFacts {
    std::weak_ptr<const Plan> plan;  ///< Which caches may have dropped.
    std::vector<TaskFacts> tasks;
  };
  static constexpr size_t kMostFacts = 256;  ///< More forget them all.
  PlanFacts& FactsOf(const std::shared_ptr<const Plan>& plan,
                     const std::vector<actor::TaskStatistics>& tasks);
  void Count(const std::shared_ptr<const Plan>& plan, const actor::RunResult& result);

  const SessionOptions& options_;
  const SessionEnvironment& environment_;
  SessionRuntime& shared_;
  ops::KernelContext& context_;
  const bool runs_directly_;
  std::unordered_map<const Graph*, Known> known_;
  std::unique_ptr<ops::Arena> alone_;  ///< Direct parts have one thread.
  GrownColumns grown_;
  ScalarBlocks scalars_;
  RandomSeeds seeds_;
  DivergenceGuard guard_;
  BlockCompiler compiler_;
  SessionStatistics statistics_;
  std::unordered_map<uint64_t, PlanFacts> facts_;  // By key.
  const uint32_t lane_;
  uint32_t runs_ = 0;  // in the lane
};

}  // namespace heddle::engine
