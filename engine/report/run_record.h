// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "engine/session/rank_record.h"
#include "engine/session/statistics.h"
#include "engine/variables/session_options.h"

namespace heddle::engine {

/// All that is known of a run that is over. Plain data.
struct RunRecord {
  std::string script;                          ///< Its name, as in places.
  std::map<std::string, std::string> sources;  ///< Texts by name: the script, and others where time went.
  std::string error;                           ///< Why it failed; "": it did not.
  int ranks = 1;
  int threads = 1;  ///< Of a rank.
  std::string fusion;
  std::vector<SessionStatistics> statistics;  ///< Of the ranks that reported,
  std::vector<RankRecord> records;            ///< and what they noted.
  /// Of a job: an attempt before the last one, which is what the rest tells of.
  struct Restart {
    int attempt = 0;
    int64_t ended_ms = 0;  ///< Since the job was submitted.
    std::string reason;    ///< Why it ended.
  };
  std::vector<Restart> restarts;
};

/// How many events of each thread are kept by those who ask for a record and for nothing more.
constexpr int64_t kRecordedEvents = 32'768;

/// Puts a record together. `load` gives the text of a file that a script sourced, nullopt where there is
/// none; what is part of Heddle's library is found here.
RunRecord MakeRunRecord(const std::string& script, const std::string& text, const SessionOptions& options,
                        const Status& status, std::vector<SessionStatistics> statistics,
                        std::vector<RankRecord> records,
                        const std::function<std::optional<std::string>(const std::string& file)>& load);

}  // namespace heddle::engine
