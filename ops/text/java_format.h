// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/values/scalar.h"

namespace heddle::ops {

/// Java's String.format as print("...", a, b) uses it: %[index$][flags][width][.precision]conversion with the
/// conversions d x X o (integers), f e E g G (doubles), s S b B (anything), c (an integer code point), n and
/// %, flags - # + blank 0 , ( and the index "<". Digits are those of Double.toString, rounded half up.
/// kFailedPrecondition names the specifier that is unknown, has no argument, or does not fit its argument.
Result<std::string> JavaFormat(std::string_view format, std::span<const Scalar* const> arguments);

}  // namespace heddle::ops
