// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/programs/program.h"
#include "engine/blocks/block_runner.h"
#include "engine/blocks/session_runtime.h"
#include "engine/control/control_program.h"
#include "engine/control/parallel_iterations.h"
#include "engine/variables/share_report.h"

namespace heddle::engine {

/// Shares the iterations of a parfor out over the ranks of a session (docs/parfor.md): rank r of n runs
/// number r, r + n, r + 2n, ... on its own, as a session of one rank would, on its threads. Every rank
/// decides alike and takes part in the exchanges before and after. A rank that is alone has nobody to
/// exchange anything with: its threads run all iterations on the variables as they are.
///
/// With several ranks, when an iteration fails anywhere, nothing has happened: the loop is run in order, and
/// the error and what is printed before it are those of that run.
class SharedIterations : public IterationRunner {
 public:
  /// All outlive it. `blocks` is the runner of the program around the loops, in lane 0 of `runtime`,
  /// `context` its kernels'.
  SharedIterations(const Program& program, const SessionOptions& options,
                   const SessionEnvironment& environment, const ops::KernelContext& context,
                   SessionRuntime& runtime, BlockRunner& blocks, const std::atomic<bool>& cancelled);
  ~SharedIterations() override;

  Result<bool> Run(const Block& loop, const LoopRange& range, size_t depth, VariableTable* frame) override;
  /// Loops that fail here are run in order, where the calls are known.
  const std::vector<CallSite>& open_calls() const override { return local_->open_calls(); }
  /// Adds what was done to the statistics of `blocks`; at the end.
  void Finish() override;
  /// Ends what runs on this rank beside the plans of all ranks, and all that follows. Any thread.
  void Cancel(const Status& why);

 private:
  // What is known of a loop: what its blocks name, and how its rounds went.
  struct LoopFacts {
    std::set<std::string> names;             // Variables that its body reads or writes.
    std::map<int32_t, const Block*> adding;  // Blocks that add to sums, by number.
    bool can_be_shared = false;
    bool has_run = false;
    int64_t iteration_ns = 0;  // On average, on rank 0.
  };

  struct SessionOfThisRank;

  Result<bool> RunHere(const Block& loop, const LoopRange& range, size_t depth, VariableTable* frame);
  Result<bool> RunOnRanks(const Block& loop, const LoopRange& range, size_t depth, VariableTable* frame);
  LoopFacts& FactsOf(const Block& loop);
  static bool CanBeShared(const LoopFacts& facts, const Block& loop, const LoopRange& range,
                          const VariableTable& frame, const SessionOptions& options);
  Result<bool> Pays(const Block& loop, const LoopFacts& facts, const LoopRange& range,
                    const VariableTable& frame);
  /// The variables that the body names, whole on this rank.
  Status Replicate(const LoopFacts& facts, const VariableTable& frame, VariableTable* local);
  LoopRange ShareOf(const LoopRange& range) const;
  // What the ranks send each other beside the report of a share.
  struct ShareContents {
    std::vector<PrintedText> printed;
    std::string terms;                 // Of sums.
    std::vector<std::string> changes;  // Of frames and lists, of each rank.
  };
  /// What the iterations of this rank did to the variables: of matrices the cells, of the others in
  /// `contents`.
  Status FindChanges(const Block& loop, const VariableTable& before, const VariableTable& after,
                     ShareReport* own, std::vector<Matrix>* cells, ShareContents* contents);
  /// Tells all ranks what every rank reports, the terms of sums and the changes of frames and lists, and rank
  /// 0 what was printed.
  Result<std::vector<ShareReport>> ExchangeReports(const Block& loop, const VariableTable& before,
                                                   const ShareReport& own, ShareContents* contents);
  /// Adds the terms of all iterations to the sums of `frame`, in their order. False: that failed on every
  /// rank, and the sums are as before.
  Result<bool> AddTerms(const Block& loop, std::vector<SumTerm> terms, VariableTable* frame);
  /// Puts the changed cells of all ranks into the matrices of `frame`.
  Status ExchangeCells(const Block& loop, const std::vector<ShareReport>& reports,
                       const VariableTable& before, std::vector<Matrix> cells, VariableTable* frame);
  /// Puts what all ranks changed of frames and lists into those of `frame`.
  Status AdoptChanges(const Block& loop, const std::vector<ShareReport>& reports, const VariableTable& before,
                      const std::vector<std::string>& changes, VariableTable* frame);

  const Program& program_;
  const SessionOptions& options_;
  const SessionEnvironment& environment_;
  BlockRunner& blocks_;
  const std::atomic<bool>& cancelled_;
  std::unique_ptr<SessionOfThisRank> own_;  // With several ranks.
  std::unique_ptr<ParallelIterations> local_;
  std::unordered_map<const Block*, LoopFacts> facts_;
};

}  // namespace heddle::engine
