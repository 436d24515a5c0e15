// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/values/matrix.h"

// What the ranks tell each other of a file, as rows of numbers: the lists of partial results that plans move
// (RowRule::kReduce) are matrices. Floats hold each number exactly, too.
namespace heddle::ops {

/// The bytes of share `number`, at least one row.
Result<Matrix> ShareAsRows(int64_t number, std::string_view bytes);
/// The bytes of all shares in the order of their numbers, from the rows of all in any order. kInternal when
/// they are not what ShareAsRows makes.
Result<std::vector<std::string>> SharesInRows(const Matrix& rows);

}  // namespace heddle::ops
