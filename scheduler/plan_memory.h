// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/plan.h"

namespace heddle::scheduler {

/// Fills Plan::peak_bytes: per rank, the most bytes of registers alive at once when its tasks act in plan order (a
/// register lives from its producer to its last consumer on the rank, at least until the end for remote readers).
void MeasurePeak(Plan* plan);

/// kResourceExhausted when a rank needs more than memory_bytes (0: unlimited), naming the largest register's operator.
Status CheckMemory(const Plan& plan, int64_t memory_bytes);

}  // namespace heddle::scheduler
