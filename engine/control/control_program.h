// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/call_site.h"
#include "core/programs/program.h"
#include "engine/blocks/block_runner.h"
#include "engine/control/list_steps.h"
#include "engine/control/run_watch.h"
#include "engine/recursion/gradient.h"
#include "engine/recursion/runner.h"
#include "engine/variables/control_state.h"
#include "engine/variables/variables.h"

namespace heddle::engine {

/// Runs the blocks of an iteration that add to sums over all iterations: when it is the turn of the
/// iteration, or later, where the sums are.
class SumTaker {
 public:
  virtual ~SumTaker() = default;
  /// False: the block has nothing to do with sums, and has not run.
  virtual Result<bool> Run(const Block& block, VariableTable* frame) = 0;
};

/// The rounds of a loop, and what the seeds of a parfor's come from.
struct LoopRange {
  int64_t from = 0;
  int64_t increment = 1;
  uint64_t rounds = 0;
  int64_t seed = 0;
  uint64_t first = 0;  ///< Number of its first round in the loop,
  uint64_t step = 1;   ///< and by how much the next one has more: a share of a parfor's iterations.
  RecursionForests::Evaluated forest;  ///< What calls of a recursion in its rounds find; nullptr: nothing.

  int64_t ValueOf(uint64_t round) const {
    return static_cast<int64_t>(static_cast<uint64_t>(from) + round * static_cast<uint64_t>(increment));
  }
  uint64_t NumberOf(uint64_t round) const { return first + round * step; }
};

/// Runs the iterations of a parfor in another way than one after the other (shared_iterations.h).
class IterationRunner {
 public:
  virtual ~IterationRunner() = default;
  /// Runs all rounds of a loop inside of `depth` calls. Leaves the loop variable and what was assigned in
  /// `frame`. Errors carry their place. False: nothing has happened, and they are to be run in order.
  virtual Result<bool> Run(const Block& loop, const LoopRange& range, size_t depth, VariableTable* frame) = 0;
  /// The calls within the body on the way to the error of the last loop.
  virtual const std::vector<CallSite>& open_calls() const = 0;
  /// Adds what it did to the statistics of the session; once, when all is over.
  virtual void Finish() = 0;
};

/// Interprets the control flow of a program. Every rank runs the same one on the same scalars (replicated
/// control, runtime reference 4.3). Keeps its own stack, so that a deep recursion of the script is an error
/// of the script.
class ControlProgram {
 public:
  /// All outlive it. `cancelled` ends the run between two blocks, and so does `stopped`, where it is given:
  /// of this program alone, while that of the session goes on.
  ControlProgram(const Program& program, const SessionOptions& options, BlockRunner& blocks,
                 const std::atomic<bool>& cancelled, const std::atomic<bool>* stopped = nullptr)
      : program_(program),
        options_(options),
        blocks_(blocks),
        lists_(&blocks),
        recursions_(program, options, blocks),
        gradients_(program, options, blocks),
        cancelled_(cancelled),
        stopped_(stopped),
        watch_(blocks) {}

  /// As in SessionEnvironment; before it runs.
  void set_states(StateTaker* states) { states_ = states; }
  /// Iterations of a parfor may be run by `iterations`, which outlives the program.
  void set_iterations(IterationRunner* iterations) { iterations_ = iterations; }
  /// Runs the main program to its end, from `variables` on. kCancelled when `cancelled` ended it.
  Status Run(VariableTable variables = {});
  /// What Run() has left of the variables of the main program.
  VariableTable TakeVariables() { return std::move(*frames_.front()); }
  /// Stands where another one stood, on `ranks_before` ranks, instead of at the beginning; once, in the place
  /// of Run(). kFailedPrecondition when `state` is not one of this program, kAborted when a file of a source
  /// has changed.
  Status Restore(ControlState state, int ranks_before);
  /// Runs to the end from there.
  Status GoOn();
  /// Runs the body of a parfor inside of `depth` calls to its end, once, on the variables of `*frame`. Errors
  /// do not tell the calls on the way to them: open_calls() does. `is_alone`: no other iteration of the loop
  /// runs at the same time.
  Status RunBody(const Block& loop, VariableTable* frame, size_t depth, SumTaker* sums, bool is_alone);
  /// What calls of a recursion in bodies find, from now on.
  void Adopt(RecursionForests::Evaluated forest) { recursions_.Adopt(std::move(forest)); }
  /// True when the last RunBody ended at a loop that counts down, against what lets iterations run at once.
  bool met_downward_loop() const { return met_downward_loop_; }
  std::vector<CallSite> open_calls() const;

 private:
  using Kind = ControlState::Activation::Kind;

  // One entry of the stack: a list of blocks in progress, and what happens at its end.
  struct Activation {
    Kind kind = Kind::kSequence;
    const std::vector<Block>* blocks = nullptr;
    size_t next = 0;
    const Block* owner = nullptr;        // The block that this is the body of; nullptr for the main program.
    const Function* function = nullptr;  // kCall
    int64_t value = 0;                   // kFor, kParallelFor: of the loop variable,
    int64_t increment = 0;               // its step,
    uint64_t rounds = 0;                 // rounds left after this one.
    uint64_t round = 0;                  // number of this one, from 0;
    int64_t seed = 0;                    // kParallelFor: what the seeds of its rounds come from.
  };

  Status RunToEnd();
  Status RunSteps();
  Status RunStep();
  Status RunWatchedStep();
  void ShowEntered(const Activation& activation);
  // Tells who plans the next block which loops are around it: those of the call that runs, the innermost
  // last; of a condition, the loop that asks it, too.
  void TellLoops(const Block* entered = nullptr);
  OpenLoop LoopOf(const Block& loop, double rounds);
  void ShowLeft(Kind kind);
  Status EnterLoopsAgain();
  ControlState State() const;
  Status OfferState();
  Status Recompute(Variable* variable, uint64_t* number);
  Status ShareOut(VariableTable* frame);
  VariableTable& frame() { return *frames_.back(); }
  Status WithCalls(Status status) const;
  Result<bool> RunIterations(const Block& block, const LoopRange& range);
  Status Enter(const Block& block);
  Status FinishBody();
  Status EnterFor(const Block& block);
  Status EnterCall(const Block& block);
  Status BindArgument(const Block& block, const Function& function, std::string_view parameter,
                      const Variable* variable, VariableTable* callee) const;
  Result<bool> EvaluateForest(const Block& loop, LoopRange* range);
  bool IsInside(const Function& function) const;
  Status FinishCall(const Block& block, const Function& function);
  Status BindList(const Block& block, const Function& function, const VariableTable& callee);
  Result<bool> Decide(const Block& block);
  /// Whether the loop goes on; `*next` is where its body begins: behind the first block, where that has run
  /// together with the predicate.
  Result<bool> DecideLoop(const Block& loop, size_t* next);
  /// The same where the predicate is no scalar of scalars, as that of most loops is.
  [[gnu::noinline]] Result<bool> DecideByPlan(const Block& loop, size_t* next);
  Result<bool> TakePredicate(const Block& block);
  Result<bool> Take(const Block& block, const Scalar& decided);
  Result<std::optional<int64_t>> LoopBound(const Block& block, const char* name);
  Status Record(const Block& block, std::string_view decision);
  void FreeDead(const Block& block);

  const Program& program_;
  const SessionOptions& options_;
  BlockRunner& blocks_;
  ListSteps lists_;
  RecursionRunner recursions_;
  RecursionGradient gradients_;
  const std::atomic<bool>& cancelled_;
  const std::atomic<bool>* stopped_;
  RunWatch watch_;
  IterationRunner* iterations_ = nullptr;
  StateTaker* states_ = nullptr;
  std::vector<Activation> stack_;
  std::map<const Block*, std::set<std::string>> assigned_in_;  // By loop; of sessions with devices.
  OpenFrames frames_;
  size_t depth_ = 0;                        // RunBody: calls around the loop.
  SumTaker* sums_ = nullptr;                // RunBody only.
  const Block* concurrent_loop_ = nullptr;  // RunBody: the loop, where other iterations of it run at once.
  bool met_downward_loop_ = false;
  std::vector<CallSite> calls_below_;  // Open in what failed, an iteration or a recursion.
  int64_t decisions_ = 0;
  uint64_t program_hash_ = 0;  // Where states are taken.
};

}  // namespace heddle::engine
