// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/base/stages.h"

namespace heddle::ops {

/// Whether a call of index or indexAssign chooses rows: by its inputs `first` and `first` + 1.
bool HasRowBounds(const Node& node, int first);

/// X[rl:ru, cl:cu] of an X whose rows lie on several ranks: few rows go to all of them, many become rows of
/// the result, as many as only the run tells stay where they are.
extern const StagedForm kIndexStages;

}  // namespace heddle::ops
