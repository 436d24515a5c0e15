// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/report/run_record.h"

namespace heddle::engine {

/// The sections of a page about what only several ranks or attempts have: how evenly the ranks worked, and
/// why earlier attempts of a job ended. "" where there is nothing to say.
std::string SkewSection(const RunRecord& record);
std::string RestartsSection(const RunRecord& record);

}  // namespace heddle::engine
