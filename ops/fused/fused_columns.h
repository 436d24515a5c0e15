// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/base/stages.h"

namespace heddle::ops {

/// A fused operator of cell-wise operators by columns, or of these and an aggregate of each column: each rank
/// runs the same operators on its columns. Or of these and one full aggregate, whose leaves are chunks of
/// columns: each rank makes nodes of them.
extern const StagedForm kFusedColumns;

}  // namespace heddle::ops
