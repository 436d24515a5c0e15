// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/programs/plan.h"

namespace heddle {

/// How many columns of frames the plans in a cache may have together: each takes some tens of bytes for its
/// name. A loop in which a frame grows makes a plan a round, all for wider and wider frames.
constexpr int64_t kMostColumnsOfPlans = int64_t{1} << 20;

/// The columns of all frames that a plan names, as often as it does. Told by its text alone, so that all
/// ranks come to the same number.
int64_t ColumnsOfFrames(const Plan& plan);

}  // namespace heddle
