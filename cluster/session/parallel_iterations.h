// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "cluster/session/block_runner.h"
#include "cluster/session/control_program.h"
#include "cluster/session/split_sums.h"
#include "core/call_site.h"
#include "core/program.h"

namespace heddle::cluster {

/// Runs iterations of a parfor at once, on threads of this rank: the same bytes as one after the other.
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
  /// Adds what its runners did to the statistics of `blocks`.
  ~ParallelIterations();

  /// Whether iterations of this parfor may run at once, and it is worth it: they are independent and write no
  /// files, there are several threads and rounds, and earlier rounds took long enough.
  bool CanRun(const Block& loop, uint64_t rounds, const Frame& frame);
  /// All rounds of a loop inside of `depth` calls. Leaves the loop variable and what was assigned in `frame`.
  /// Errors carry their place.
  Status Run(const Block& loop, const LoopRange& range, size_t depth, Frame* frame);
  /// The calls within the body on the way to the error of the last loop.
  const std::vector<CallSite>& open_calls() const { return open_calls_; }

 private:
  struct Lane;
  struct Loop;
  class Worker;
  // Of the blocks in a loop's body that add to its sums.
  using Splits = std::unordered_map<const Block*, SplitGraph>;

  bool WritesFiles(const Block& loop);
  int WorkersFor(const Block& loop, uint64_t rounds, const Frame& frame) const;
  const Splits& SplitsOf(const Block& loop);
  /// The lanes of so many workers, with kernels that print through `loop`.
  void OpenLanes(int count, Loop* loop);
  Status Attempt(Loop* loop, int workers, Frame* frame);
  void RunWorker(Loop* loop, Worker* worker);
  void Fail(Loop* loop, uint64_t iteration, const Worker& worker, const Status& status);
  Status Adopt(Loop* loop, Frame* frame) const;

  const Program& program_;
  const SessionOptions& options_;
  const SessionEnvironment& environment_;
  const ops::KernelContext& context_;
  SessionRuntime& shared_;
  BlockRunner& blocks_;
  const std::atomic<bool>& cancelled_;
  /// Of loops that ran: what an iteration took on average.
  std::unordered_map<const Block*, int64_t> iteration_ns_;
  std::unordered_map<const Block*, bool> writes_files_;
  std::unordered_map<const Block*, Splits> splits_;  ///< Graphs stay in place: runners know them by it.
  std::vector<std::unique_ptr<Lane>> lanes_;         ///< Those that were opened so far.
  std::vector<CallSite> open_calls_;
};

}  // namespace heddle::cluster
