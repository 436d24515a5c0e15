// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/report/run_record.h"

namespace heddle::engine {

/// When the first rank began, by the clock of the events.
int64_t BeginOf(const RunRecord& record);

/// What a process held at a moment.
struct MemoryPoint {
  int64_t at_ns = 0;
  int64_t bytes = 0;
};
/// Of a rank over time. Of many events some hundred points are left, each the most that was held in its part
/// of the time.
std::vector<MemoryPoint> MemoryOf(const RankRecord& record);

/// What page/report.js draws, as JSON:
///     {"elapsed": s, "ranks": [{"rank": 0, "limit": bytes, "memory": {"t": [s], "b": [bytes]},
///       "sites": [["name", "kind", "place", "stream"], ...],
///       "threads": [{"name": "main", "dropped": 0, "b": [us], "d": [us], "s": [site], "n": [rows]}]}]}
/// Beginnings are told as differences from the one before.
std::string ChartsJson(const RunRecord& record);

/// Memory over time as SVG, for a page without scripts; "" where nothing is known.
std::string MemoryPicture(const RunRecord& record);

}  // namespace heddle::engine
