// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "scheduler/place.h"

namespace heddle::scheduler {

/// Gives operators that one rank computes alone to several ranks, where some of them do not depend on each
/// other and each is much work: two factorizations of one block run at once then. Operators that hand values
/// on to each other stay together; what prints, reads or writes stays on rank 0.
void SpreadWhole(const Graph& graph, const ScheduleOptions& options, std::vector<Placement>* placements);

}  // namespace heddle::scheduler
