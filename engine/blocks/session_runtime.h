// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "actor/runtime.h"
#include "engine/blocks/plan_cache.h"
#include "engine/blocks/plan_records.h"
#include "engine/recursion/kernels.h"
#include "engine/session/session.h"
#include "engine/variables/source.h"

namespace heddle::engine {

/// What the block runners of a session, one for each lane, share: its plans, kernels and actor runtime.
/// Thread-safe.
class SessionRuntime {
 public:
  /// All outlive it. `context` is that of lane 0.
  SessionRuntime(const Program& program, const SessionOptions& options, const SessionEnvironment& environment,
                 ops::KernelContext& context);

  PlanCache& plans() { return plans_; }
  const PlanCache& plans() const { return plans_; }
  /// The runtime of this rank, made when first asked for.
  actor::Runtime& runtime();
  /// Ends what runs and all that follows.
  void Cancel(const Status& why);
  const ops::KernelSource& kernels() const { return kernels_; }
  RecursionKernels& recursions() { return kernels_; }
  /// Where states are taken; else nullptr.
  const Sources* sources() const { return sources_.get(); }
  /// Where a run is recorded.
  PlanRecords& plan_records() { return plan_records_; }
  const PlanRecords& plan_records() const { return plan_records_; }
  /// Bytes of the values of the plans that run, as they say themselves.
  std::atomic<int64_t>& planned_in_flight() { return planned_in_flight_; }
  /// SessionEnvironment::observe_plan, one at a time.
  void Show(const Plan& plan);

 private:
  const SessionOptions& options_;
  const SessionEnvironment& environment_;
  ops::KernelContext& context_;
  RecursionKernels kernels_;
  PlanCache plans_;
  std::unique_ptr<const Sources> sources_;
  PlanRecords plan_records_;
  std::atomic<int64_t> planned_in_flight_ = 0;
  std::mutex mutex_;
  std::unique_ptr<actor::Runtime> runtime_;
  Status cancelled_;  // under mutex_
};

}  // namespace heddle::engine
