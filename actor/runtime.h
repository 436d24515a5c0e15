// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actor/link.h"
#include "core/programs/plan.h"
#include "core/values/value.h"
#include "ops/base/kernel.h"

namespace heddle {
class MemoryBudget;
class ProgressBoard;
class Recorder;
}  // namespace heddle

namespace heddle::actor {

/// What one task did in a run, for -stats.
struct TaskStatistics {
  NodeId node = kNoNode;
  Phase phase = Phase::kWhole;
  TaskKind kind = TaskKind::kCompute;
  int64_t acts = 0;
  int64_t kernel_ns = 0;  ///< 0 without RuntimeOptions::times_acts
  int64_t rows = 0;
  int64_t bytes_in = 0;  ///< Bytes pulled from other ranks (copy tasks).
};

/// What a run finds of a live-out whose size its plan did not know.
struct FoundSize {
  ValueInfo info;             ///< Of the whole value.
  std::vector<int64_t> cuts;  ///< Where it is cut, if it is split: Split::cuts.
};

struct RunResult {
  std::map<std::string, Value> live_out;   ///< This rank's pieces of the plan's live-outs.
  std::map<std::string, FoundSize> sizes;  ///< Of live-outs whose size the plan did not know.
  std::vector<TaskStatistics> statistics;
};

struct RuntimeOptions {
  uint32_t rank = 0;
  int threads = 1;  ///< Concurrency of the CPU device: of the arena in which a kernel runs.
  bool set_denormals =
      true;  ///< Sets MXCSR (round to nearest, no flush to zero) on every thread that runs kernels.
  bool times_acts = false;               ///< Reads the clock around every act, for TaskStatistics::kernel_ns.
  const MemoryBudget* budget = nullptr;  ///< Into which runs in flight have to fit; nullptr: the process's.
  /// For runs that this rank has not begun, 32 bytes each. With more of them the run fails that they are for.
  int64_t most_early_messages = 1 << 20;
  /// Where acts and copies are noted, and where a run says how far it is; nullptr: nowhere. They outlive the
  /// runtime.
  Recorder* recorder = nullptr;
  ProgressBoard* progress = nullptr;
  int64_t stall_ms = 10'000;  ///< Nothing happens for this long: look whether anything still can.
};

/// Runs plans on one rank: one OS thread per stream, one actor per task, nobody blocks.
///
/// The thread that calls Run() serves the compute stream itself, and all streams when the plan has no copy
/// tasks on this rank: no hand-over between threads then. Plans with copy tasks use two threads of the
/// runtime (host, network), made once by Create when there is a link. Kernels too long for a thread that has
/// messages to answer run on the device's thread (device_worker.h), made once before the first run that needs
/// it. Run() waits only when none of its actors can act.
///
/// Several runs may be in flight at once, each in a lane of its own (run_number.h) and called from a thread
/// of its own. They share the threads of host and network, the pool and the budget: a run whose plan has no
/// other ranks begins when its stated memory fits beside that of the others (run_admission.h). An error ends
/// the runs of its lane alone. Effects are in the order of the script within a run; across lanes whoever
/// calls has to bring them in order.
class Runtime : public LinkHandler {
 public:
  /// `kernels`, `context` and `link` outlive the runtime; link may be nullptr when plans have one rank. Sets
  /// context.cancelled to a flag of its own, true from the failure of a run to the start of the next one.
  static std::unique_ptr<Runtime> Create(const RuntimeOptions& options, const ops::KernelSource& kernels,
                                         ops::KernelContext& context, Link* link);

  /// One epoch of `plan` on this rank, with this rank's pieces of the live-ins by variable name. `run` is the
  /// same on all ranks and names the lane; its place there grows by one per call. The first error in (node,
  /// rank) order that this rank knows wins; its position is the node's. After an error all slots are free
  /// again and the runtime can run the next plan. A rank that has ended its part of a run before another rank
  /// failed in it hears of the failure in its next run, which then fails. Actors of a plan are constructed
  /// once and reused while the same plan (by key; by object if the key is 0) runs again in a lane; the last
  /// 256 are kept. One caller at a time for each lane.
  virtual Result<RunResult> Run(std::shared_ptr<const Plan> plan, uint32_t run,
                                std::map<std::string, Value> live_in) = 0;

  /// Whether the last run of a lane ended with what another rank said outside of its tasks: that it takes no
  /// part, or has failed in an earlier run. What is known of the way to the failure is known there. By the
  /// caller of Run.
  virtual bool HasFailedElsewhere(uint32_t lane) = 0;

  /// Says that this rank takes no part in `run`, the next one of its lane, nor in those after it, because of
  /// a failure between two runs. On the other ranks `run`, if they come to it, ends with `why`. Returns at
  /// once.
  virtual void Leave(uint32_t run, uint32_t ranks, const Status& why) = 0;

  /// Opens a lane beside that of number 0, or opens it anew: kernels of its runs use `threads` threads and a
  /// copy of `context`. Not while it runs.
  virtual void OpenLane(uint32_t lane, int threads, const ops::KernelContext& context) = 0;
  /// Ends the run of one lane and all later ones until it is opened anew. Any thread, returns at once.
  virtual void CancelLane(uint32_t lane, Status why) = 0;

  /// Ends the runs in flight and all later ones with `why` (Ctrl-C, a lost peer); the other ranks are told.
  /// Any thread, returns at once. An error that a script caused in the same run is reported rather than
  /// `why`.
  virtual void Cancel(Status why) = 0;
};

}  // namespace heddle::actor
