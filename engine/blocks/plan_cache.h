// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/programs/frames_of_plan.h"
#include "core/programs/plan.h"
#include "core/recently_used.h"
#include "core/status.h"
#include "engine/variables/divergence_guard.h"

namespace heddle::engine {

class ControlChannel;

/// Plans by key, the most recently used ones. With several ranks rank 0 makes what is missing and the others
/// receive it; every rank asks for the same keys in the same order, so all of them miss, and forget, the same
/// plans. Those of very wide frames, whose names take much memory, are the first to go. Thread-safe; one plan
/// is made at a time, so that nobody makes what another thread is making.
class PlanCache {
 public:
  /// `control` may be nullptr with one rank. `capacity` plans are kept.
  PlanCache(int rank, int ranks, ControlChannel* control, size_t capacity = 256)
      : rank_(rank), ranks_(ranks), control_(control), plans_(capacity, kMostColumnsOfPlans) {}

  /// Adds a plan that came with the job (precompile.h), under the key it carries.
  Status AddText(const std::string& text);

  /// The plan of `key`; `make` is called on rank 0 when it is missing. An error of `make` is the error on
  /// every rank (Status::is_on_every_rank). kInternal when the ranks disagree about what comes next
  /// (`guard`), with both traces.
  /// `*is_new`, where given: it was missing.
  Result<std::shared_ptr<const Plan>> Obtain(uint64_t key, const DivergenceGuard& guard,
                                             const std::function<Result<Plan>()>& make,
                                             bool* is_new = nullptr);
  /// A text that rank 0 makes and all ranks get, about what is to come next by `key`; fails as Obtain does.
  Result<std::string> Share(uint64_t key, const DivergenceGuard& guard,
                            const std::function<std::string()>& make);
  /// Compares the guards of all ranks without asking for a plan.
  Status Compare(const DivergenceGuard& guard);

  // Only while nobody asks for plans.
  int64_t hits() const { return hits_; }
  int64_t precompiled() const { return precompiled_; }  ///< Plans that came with the job and were asked for.
  int64_t misses() const { return misses_; }

 private:
  struct Entry {
    std::shared_ptr<const Plan> plan;
    bool is_unused_precompiled = false;  // it came with the job, and nobody has asked for it yet
  };
  void Insert(std::shared_ptr<const Plan> plan, bool is_precompiled);
  Result<Plan> MakeAndSend(uint64_t key, const DivergenceGuard& guard,
                           const std::function<Result<Plan>()>& make);
  Result<Plan> ReceivePlan(uint64_t key, const DivergenceGuard& guard);

  int rank_;
  int ranks_;
  ControlChannel* control_;
  std::mutex mutex_;  // Guards what follows, and is held while a plan is made.
  RecentlyUsedMap<uint64_t, Entry> plans_;
  int64_t hits_ = 0;
  int64_t precompiled_ = 0;
  int64_t misses_ = 0;
};

}  // namespace heddle::engine
