// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/recursion/body/recursive_body.h"

namespace heddle::compiler {

/// Products of a body with one left operand and several matrices that all nodes share become one product with
/// these side by side, of which each reads its columns: x %*% Wi and x %*% Wf are ranges of
/// x %*% cbind(Wi, Wf). Only matrices that are multiplied with the same left operands, so that products of
/// several children with one matrix can still be one (BodyValue::stacked). Needs: inputs before their
/// readers. Keeps every bit: a cell's chain knows nothing of the columns beside it.
void JoinColumns(ops::RecursiveBody* body);

}  // namespace heddle::compiler
