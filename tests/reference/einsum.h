// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "core/values/matrix.h"

// What einsum() means, as literal loops. For tests only.
namespace heddle::ops::reference {

/// Goes through every index of every letter at once. A scalar comes as a 1 x 1 matrix.
Matrix Einsum(std::string_view equation, std::span<const Matrix> operands);

}  // namespace heddle::ops::reference
