// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/report/run_record.h"

namespace heddle::engine {

/// What a line of a script took, of all ranks and threads together.
struct LineTime {
  int64_t own_ns = 0;    ///< Its operators, and what ran between them.
  int64_t total_ns = 0;  ///< With all that ran in calls from it.
  int64_t acts = 0;      ///< Of its operators.
};

/// The times of a run by file and line.
struct LineTimes {
  std::map<std::string, std::map<int32_t, LineTime>> files;
  int64_t all_ns = 0;       ///< Of everything. Shares are of this.
  int64_t planning_ns = 0;  ///< Plans were made.
};
LineTimes TimesOf(const RunRecord& record);

/// The statement in a line of a source, on one line, without the variable that it assigns, of at most `most`
/// letters; "" where there is no such line.
std::string StatementAt(const RunRecord& record, const std::string& file, int32_t line, size_t most = 60);

/// What took the time, in a sentence or two: "92 % of the 3.1 s went into t(X) %*% X at line 7." The parts
/// that come from a script pass through `quote`.
std::string FirstSentence(const RunRecord& record, const LineTimes& times,
                          const std::function<std::string(const std::string& code)>& quote);

}  // namespace heddle::engine
