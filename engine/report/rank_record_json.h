// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/status.h"
#include "engine/session/rank_record.h"

namespace heddle::engine {

/// A record as one JSON object on one line, and back. kDataLoss for what is no such object.
std::string ToJson(const RankRecord& record);
/// The same in at most `most_bytes`: of each thread the shorter half of the events goes, and counts as
/// dropped, then the plans that took the shortest time, until it fits. "" where nothing is left to leave out.
std::string ToJson(RankRecord record, int64_t most_bytes);
Result<RankRecord> ParseRankRecord(const std::string& json);

}  // namespace heddle::engine
