// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace heddle::ops::printed {

/// What stands before every kernel: doubles without contraction, and the functions that printed expressions
/// call.
std::string_view Prelude();

}  // namespace heddle::ops::printed
