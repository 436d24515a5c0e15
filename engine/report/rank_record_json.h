// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/status.h"
#include "engine/session/rank_record.h"

namespace heddle::engine {

/// A record as one JSON object on one line, and back. kDataLoss for what is no such object.
std::string ToJson(const RankRecord& record);
Result<RankRecord> ParseRankRecord(const std::string& json);

}  // namespace heddle::engine
