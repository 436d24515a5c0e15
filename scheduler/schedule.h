// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/programs/plan.h"
#include "ops/base/machine_constants.h"

namespace heddle::scheduler {

struct ScheduleOptions {
  int32_t ranks = 1;
  /// A matrix smaller than this stays whole on rank 0 unless it meets a larger one row by row. 0 splits
  /// everything.
  int64_t min_distributed_bytes = int64_t{8} << 20;
  int64_t memory_bytes = 0;                                    ///< Budget of a rank; 0: unlimited.
  ops::MachineConstants constants = ops::BuiltInConstants(1);  ///< How long tasks take goes by them.
  /// Where assigned variables are to be; those left out stay where they come out. No scalars.
  std::map<std::string, Distribution> live_out;
  /// Where live-in variables are beside `live_in`: copies that plans before this one have left.
  std::map<std::string, std::vector<Distribution>> copies;
  /// Live-in variables whose copies the plan leaves where it moves them (core/programs/variable_copy.h). None
  /// that it assigns.
  std::set<std::string> kept;
  /// Those of them that many later runs will find as they are now. What it costs to move one is shared by so
  /// many runs (kRunsOfCopy).
  std::set<std::string> lasting;
  /// About how many bytes live-in variables have, where it is known better than by their sizes: CSR.
  std::map<std::string, double> bytes;
  /// How many bytes of a rank the copies may have that the plan leaves.
  double room_for_copies = std::numeric_limits<double>::infinity();
};

/// How many runs a copy of a lasting variable is taken to serve: rounds of a loop, of whose number nothing is
/// known.
constexpr double kRunsOfCopy = 10;

/// Places every node of `graph` (all shapes known) and emits tasks, registers and boxing for all ranks.
///
/// `live_in` gives the distribution of every "variable" node by name (scalars are kEach).
/// Errors: kResourceExhausted when a rank would need more than memory_bytes, naming the largest register;
///         kInternal if the plan is not live (our bug).
Result<Plan> Schedule(const Graph& graph, const std::map<std::string, Distribution>& live_in,
                      const ScheduleOptions& options);

}  // namespace heddle::scheduler
