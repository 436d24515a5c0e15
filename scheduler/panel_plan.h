// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/programs/plan.h"

namespace heddle::scheduler {

struct PanelOptions {
  /// Live-in variables whose values are panels (core/values/row_panels.h).
  std::set<std::string> panelled;
  /// Of CSR live-ins, how many entries rows have at most (ops::MostEntries); of others nobody knows it.
  std::map<std::string, std::vector<int64_t>> most_entries = {};
  /// Values of so many bytes pass through the plan in panels; smaller ones are whole.
  int64_t least_bytes = 0;
  /// What the panels of a pass may take together, about.
  int64_t pass_bytes = 0;
  /// What a stage of an operator that does not work row by row may hold, and what one that does may have
  /// whole where it could run in stages.
  int64_t stage_bytes = 0;
  /// Assigned values of so many bytes are put together at the end of the plan; larger ones stay panels.
  int64_t whole_bytes = 0;
};

/// Lets the large values of a plan pass through it in panels of rows (docs/streaming.md): their tasks act
/// once a panel. Tasks whose acts follow each other panel by panel are a *pass*; all passes of a rank come
/// one after the other. A value that a later pass reads is read, or made, anew where that is a task without
/// panelled inputs, else it is kept as panels. An operator that needs rows of all panels acts once, in stages
/// (scheduler/staged_panels.h); ranges and rbind of panels are panels. Whatever else needs a value whole gets
/// it whole.
///
/// Needs: tasks as PlanBuilder makes them. Keeps: the bytes of every value: panels that are reduced are
/// multiples of the granule (docs/numerics.md 2). Slots, memory and liveness come afterwards.
Plan InPanels(const Plan& plan, const PanelOptions& options);

}  // namespace heddle::scheduler
