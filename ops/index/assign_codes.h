// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ops/base/operator.h"

namespace heddle::ops {

/// Operator::run_compressed of X[rl:ru, cl:cu] = V: columns that stay are columns of the dictionaries of X;
/// in the others codes of rows within the bounds are replaced by those of V, compressed, constant or few
/// dense rows, and the dictionary has the tuples of both.
///
/// Left: few rows, whose cells are written sooner than all codes are copied (a loop may assign one row after
/// the other: the first one decodes X, and others write where it is); V of many dense rows.
Result<std::optional<Value>> AssignCodes(const KernelCall& call);

}  // namespace heddle::ops
