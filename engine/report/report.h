// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/report/run_record.h"

namespace heddle::engine {

/// What took the time of a run, as one page for a browser that needs nothing else (docs/report.md). All that
/// comes from the script is escaped.
std::string ToHtml(const RunRecord& record);

/// The same first sentence as of the page, as plain text.
std::string WhatTookTheTime(const RunRecord& record);

/// All events of a run as trace events in JSON, for Perfetto and chrome://tracing: a process for each rank, a
/// track for each thread, copies between ranks and memory on tracks of their own. Times are microseconds
/// since the first rank began.
std::string ToTrace(const RunRecord& record);

}  // namespace heddle::engine
