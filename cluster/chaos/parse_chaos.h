// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "cluster/chaos/chaos.h"
#include "core/status.h"

namespace heddle::cluster {

/// What --chaos takes: "kill=2s,drop=1%,pause=500ms,seed=7" in any order. Those faults that it names, or all
/// with usual figures where it names none; the seed is random unless it is given. kUsage says which part is
/// wrong.
Result<Chaos> ParseChaos(std::string_view text);

}  // namespace heddle::cluster
