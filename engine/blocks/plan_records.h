// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "actor/runtime.h"
#include "core/programs/plan.h"
#include "engine/session/rank_record.h"

namespace heddle::engine {

/// What is recorded of the plans of a session, for all its lanes. Thread-safe.
class PlanRecords {
 public:
  /// Plans that are kept; of more the ones that took the shortest time go.
  static constexpr size_t kMost = 64;

  explicit PlanRecords(int rank) : rank_(rank) {}
  /// A run of the plan of so many nanoseconds, of which `tasks` says what each task of this rank did.
  /// `choices` is told with the first one.
  void Add(const Plan& plan, int64_t ns, std::span<const actor::TaskStatistics> tasks, std::string choices);
  /// Adds what another part of the session has noted. Once, at its end.
  void Absorb(const PlanRecords& other);
  /// Puts them into a record.
  void Fill(RankRecord* record) const;

 private:
  struct Entry {
    PlanRecord record;
    int64_t first_run = 0;         ///< Its number among those of all plans.
    std::vector<int32_t> of_node;  ///< Place in record.nodes; -1: not shown.
  };
  Entry Describe(const Plan& plan, std::string choices) const;
  void DropShortest();

  const int rank_;
  mutable std::mutex mutex_;
  std::map<uint64_t, Entry> plans_;
  int64_t runs_ = 0;
  int64_t left_out_ = 0;
};

}  // namespace heddle::engine
