// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ops/base/operator.h"

namespace heddle::ops {

/// Operator::run_compressed of operators each cell of whose result comes from the same cells of their
/// matrices, a row vector on the right and scalars: `run` gets the dictionaries in place of the rows, one
/// group after the other, and the result shares the codes. Matrices that are compressed in other groups or by
/// other codes are left, as are column vectors, and views of fewer rows than make a dictionary worth it.
/// Cost: the tuples, not the rows, but for groups that are not compressed.
Result<std::optional<Value>> RunCellsOfTuples(const KernelCall& call);

}  // namespace heddle::ops
