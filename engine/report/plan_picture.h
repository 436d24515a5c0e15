// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/session/rank_record.h"

namespace heddle::engine {

/// The most operators that a picture shows.
constexpr size_t kMostInPicture = 80;

/// A plan as an SVG: a box for each operator, below all that it reads; fused ones list what is in them; the
/// more of the plan's time a box has, the darker it is. "" for a plan that is too large for it.
std::string PlanPicture(const PlanRecord& plan);

}  // namespace heddle::engine
