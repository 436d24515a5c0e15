// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/programs/plan.h"
#include "ops/base/operator.h"
#include "scheduler/schedule.h"

namespace heddle::scheduler {

/// How one node of a graph is computed.
struct Placement {
  Distribution result;  ///< Where its value is afterwards.
  bool split = false;   ///< Every rank computes its own rows (kRowWise, kReduce, kMixed, kGenerate).
  ops::RowRule rule = ops::RowRule::kWhole;
  std::vector<Distribution> inputs;  ///< What each input is boxed to before; unused for one left out.
  Split cuts;                        ///< Of the rows that are split, where they are.
  int64_t total_rows = 0;            ///< Their number.
};

/// Chooses a placement for every node, in order (docs/architecture.md, "Distribution"). A function of the
/// graph's shapes, the live-in distributions and the options alone. Rows of a reduction whose attribute
/// "even.rows" is TRUE are few, and each is much work: they are shared out evenly, however small they are,
/// and every rank has the result.
Result<std::vector<Placement>> Place(const Graph& graph, const std::map<std::string, Distribution>& live_in,
                                     const ScheduleOptions& options);

}  // namespace heddle::scheduler
