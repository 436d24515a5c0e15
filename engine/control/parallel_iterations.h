// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/call_site.h"
#include "core/programs/program.h"
#include "engine/blocks/block_runner.h"
#include "engine/control/control_program.h"
#include "engine/control/ordered_output.h"
#include "engine/variables/sum_terms.h"

namespace heddle::engine {

/// Whether what the check of a parfor took for granted holds (Block::natural).
bool IsAsChecked(const Block& loop, const LoopRange& range, const VariableTable& frame);

/// Runs the iterations of a parfor that are this rank's share (shared_iterations.h) at once, on its threads:
/// the same bytes as one after the other.
///
/// Each thread has a lane of the runtime and variables of its own, in which it sees the state before the loop
/// and what it has written itself; it takes the next iteration when it is through with one. What iterations
/// print comes out in their order, and in their order they add to sums. When all are over the cells that
/// changed are put together. An error is that of the first iteration that fails; later ones are given up,
/// earlier ones run to their end. When memory did not suffice for several at once, the loop is run again with
/// one at a time, from the state before it; what it has printed is not printed twice.
class ParallelIterations {
 public:
  /// All outlive it. `blocks` is the runner of the program around the loops, `context` its kernels'.
  ParallelIterations(const Program& program, const SessionOptions& options,
                     const SessionEnvironment& environment, const ops::KernelContext& context,
                     SessionRuntime& shared, BlockRunner& blocks, const std::atomic<bool>& cancelled);
  ~ParallelIterations();
  /// Adds what it did to the statistics of `blocks`; once, when all is over.
  void Finish();

  /// Whether iterations of this parfor may run at once, and it is worth it: they are independent, there are
  /// several threads and rounds, and earlier rounds took long enough.
  bool Pays(const Block& loop, const LoopRange& range, const VariableTable& frame) const;
  /// Runs all rounds of a loop that is independent, inside of `depth` calls, and leaves in `frame` what they
  /// assigned. `print` gets what iterations print, and their numbers in `range`. With `terms` nothing is
  /// added to sums, which `frame` does not have then: they get what would be. Errors carry their place.
  Status Run(const Block& loop, const LoopRange& range, size_t depth, VariableTable* frame,
             const OrderedOutput::Print& print, SumTerms* terms = nullptr);
  /// The calls within the body on the way to the error of the last loop.
  const std::vector<CallSite>& open_calls() const { return open_calls_; }
  /// What an iteration of the loop took on average, when it ran last; 0 before.
  int64_t IterationNs(const Block& loop) const;

 private:
  struct Lane;
  struct Loop;
  class Worker;
  // The blocks in a loop's body that add to its sums, and the other variables that they read.
  using Adding = std::unordered_map<const Block*, std::vector<std::string>>;

  int WorkersFor(const Block& loop, uint64_t rounds, const VariableTable& frame) const;
  const Adding& AddingOf(const Block& loop);
  /// The lanes of so many workers, with kernels that print through `loop`.
  void OpenLanes(int count, Loop* loop);
  Status Attempt(Loop* loop, int workers, VariableTable* frame);
  void RunWorker(Loop* loop, Worker* worker);
  void Fail(Loop* loop, uint64_t iteration, const Worker& worker, const Status& status);
  Status Adopt(Loop* loop, VariableTable* frame) const;

  const Program& program_;
  const SessionOptions& options_;
  const SessionEnvironment& environment_;
  const ops::KernelContext& context_;
  SessionRuntime& shared_;
  BlockRunner& blocks_;
  const std::atomic<bool>& cancelled_;
  /// Of loops that ran: what an iteration took on average.
  std::unordered_map<const Block*, int64_t> iteration_ns_;
  std::unordered_map<const Block*, Adding> adding_;
  std::vector<std::unique_ptr<Lane>> lanes_;  ///< Those that were opened so far.
  std::vector<CallSite> open_calls_;
};

}  // namespace heddle::engine
