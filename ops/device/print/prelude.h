// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace heddle::ops::printed {

/// What stands before every kernel: doubles without contraction, and the functions that printed expressions
/// call.
std::string_view Prelude();

/// heddle_moments(a, b): the count, mean and squared deviations of two runs of cells as those of one, by
/// Chan's formula (docs/numerics.md, section 3). For kernels that join them; needs nothing else.
std::string_view JoinOfMoments();

}  // namespace heddle::ops::printed
