// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/programs/distribution.h"
#include "core/programs/graph.h"
#include "core/programs/phase.h"
#include "core/values/value.h"

namespace heddle {
class Clock;
}

namespace heddle::ops {

class DeviceSet;     // ops/device/device.h
class Files;         // ops/io/files/files.h
class FusedRuntime;  // ops/fused/fused.h
class PanelStore;    // ops/panels/panel_store.h
struct Operator;     // ops/base/operator.h
struct StagedForm;   // ops/base/stages.h

/// What a kernel may use besides its inputs. One per executor; shared by all its kernels.
struct KernelContext {
  Files* files = nullptr;        ///< read and write.
  PanelStore* panels = nullptr;  ///< Where rows go that are not to be in memory; nullptr: they are.
  Clock* clock = nullptr;        ///< time().
  bool times_operators = false;  ///< Fused operators look at the clock for what they record.
  std::function<void(std::string_view text)>
      print;                                     ///< Standard output of the script; called on rank 0 only.
  FusedRuntime* fused = nullptr;                 ///< Code of fused operators; nullptr: interpreted.
  DeviceSet* devices = nullptr;                  ///< Beside the processor; nullptr: none.
  const std::atomic<bool>* cancelled = nullptr;  ///< Polled between tiles; a kernel then returns Cancelled().
  int threads = 1;                               ///< Concurrency of the arena the kernel runs in.
  int rank = 0;                                  ///< Only for messages ("worker 2 cannot read ...").
  uint64_t job_seed = 0;                         ///< rand() without a seed; same on every rank of a job.
  uint64_t execution = 0;  ///< Blocks this job has run so far, same on every rank: makes
                           ///< rand() without a seed differ from one round to the next.
};

/// Asked by kernels between tiles; a kernel that saw true returns Cancelled().
inline bool IsCancelled(const std::atomic<bool>* cancelled) {
  return cancelled != nullptr && cancelled->load(std::memory_order_relaxed);
}

/// Which stage of an operator a kernel computes (ops/base/stages.h), and how the ranks share it out.
struct StagePlace {
  const StagedForm& form;
  int32_t stage = 0;
  int32_t rank = 0;
  const Split& rows;
  const Split& result_rows;
  const Value* before = nullptr;  ///< StageCall::before.
};

/// One invocation of a kernel on one rank.
struct KernelCall {
  const Node& node;  ///< info (of several: results) holds the whole result's shape and format, all known.
  Phase phase;       ///< kWhole, kPartial, kFinish (ops/base/operator.h) or kStage.
  std::span<const Value* const> inputs;  ///< This rank's pieces; nullptr for an optional input left out. For
                                         ///< kFinish: one matrix, all tree nodes (rows in any order). For
                                         ///< kStage: the pieces, where it reads them, and behind them
                                         ///< StageCall::received.
  std::span<const ValueInfo> input_infos;  ///< Of the whole values of node.inputs, also for kFinish.
  int64_t row_begin = 0;  ///< kRowWise, kGenerate and kPartial: compute rows [row_begin, row_end)
  int64_t row_end = 0;    ///< of total_rows. kRows inputs hold just these rows; kWhole inputs all.
  int64_t total_rows = 0;
  KernelContext& context;
  Value* last_read = nullptr;    ///< inputs[0], when this kernel is the last to read it: it may take it and
                                 ///< write the result over its cells.
  const Operator* op = nullptr;  ///< That of node.op, where the caller has looked it up already.
  const StagePlace* stage = nullptr;  ///< Of kStage.
};

/// Where the actor runtime finds code; whether it was compiled ahead or just in time is not its business.
class KernelSource {
 public:
  virtual ~KernelSource() = default;
  /// Runs the operator of `call` and leaves what it makes in `results`: one value, or one for each result of
  /// the node ("partial" always makes one list). Thread-safe. Errors carry no position: the caller adds
  /// node.position.
  virtual Status Run(const KernelCall& call, std::span<Value> results) const = 0;
  /// The same for an operator of one result.
  Result<Value> Run(const KernelCall& call) const {
    Value result;
    HEDDLE_RETURN_IF_ERROR(Run(call, {&result, 1}));
    return result;
  }
};

/// The kernels of ops/catalog.cc.
const KernelSource& CatalogKernels();

}  // namespace heddle::ops
