// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ops/fused/program/body_view.h"

namespace heddle::ops {

/// By node: the stage of a cell-wise node is that of the region that computes it, of any other value the one
/// before whose regions a step makes it; 0 for inputs. As early as operands allow; but a cell-wise node that
/// only one later region reads is computed there, if what it reads is there anyway: one buffer less.
std::vector<int> FindStages(const BodyView& view);

}  // namespace heddle::ops
