// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/programs/plan.h"

namespace heddle {
class Recorder;
}

namespace heddle::actor {

class PlanInstance;

/// What a task of the plan is called where people read of it: its operator, with what is in it if it is fused
/// ("cell sum"), and the part of the work that it does ("sum.partial").
std::string TaskName(const Plan& plan, NodeId node, Phase phase);

/// By actor number: the sites of the acts of a plan.
std::vector<uint32_t> SitesOf(const PlanInstance& instance, Recorder& recorder);

/// By actor number: the line that progress shows for its acts, of the function that the plan belongs to; 0:
/// not known.
std::vector<int32_t> LinesOf(const PlanInstance& instance);

}  // namespace heddle::actor
