// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/base/stages.h"

// table() on several ranks.
namespace heddle::ops {

InputUse TableInputUse(const Node& node, std::span<const ValueInfo> inputs, int i);
extern const StagedForm kTableStaged;

}  // namespace heddle::ops
