// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/environment/recorder.h"

namespace heddle::engine {

/// One operator of a plan that ran, with what its tasks did on a rank. Plain data.
struct PlanNodeRecord {
  std::string name;
  std::string shape;            ///< Of its result: "1000x20", "scalar".
  std::string place;            ///< "train.dml:7:9"; "" where it has none.
  std::string body;             ///< Of a fused one: the operators in it, as explain writes them.
  std::vector<int32_t> inputs;  ///< Places in PlanRecord::nodes.
  int64_t acts = 0;
  int64_t ns = 0;
  int64_t rows = 0;
};

/// A plan, all its runs together. Plain data.
struct PlanRecord {
  uint64_t key = 0;
  int64_t runs = 0;
  int64_t ns = 0;              ///< Of all runs, from beginning to end.
  int64_t expected_ns = 0;     ///< What the cost model says that the operators of one run take; 0: nothing.
  int64_t promised_bytes = 0;  ///< Memory that a run does not outgrow.
  std::vector<PlanNodeRecord> nodes;
  std::string choices;  ///< Which plans there were to choose from, with their costs; "": nothing to choose.
};

/// What one rank noted in a run (SessionOptions::recorded_events). Plain data.
struct RankRecord {
  int rank = 0;
  int64_t begin_ns = 0;     ///< By the clock of the events.
  int64_t limit_bytes = 0;  ///< Of memory, of the process.
  std::vector<RecordedSite> sites;
  std::vector<RecordedThread> threads;
  std::vector<PlanRecord> plans;  ///< Those that took the longest, in the order of their first runs.
  int64_t plans_left_out = 0;
};

}  // namespace heddle::engine
