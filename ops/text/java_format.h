// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "core/values/scalar.h"

namespace heddle::ops {

/// null, boolean, char, int, long, double, or the text of any other object.
using JavaFormatArgument =
    std::variant<std::monostate, bool, char16_t, int32_t, int64_t, double, std::string>;

/// Java's String.format: %[index$][flags][width][.precision]conversion with the conversions d x X o
/// (integers), f e E g G (doubles), s S b B (anything), c C (a char or an integer code point), n and %, flags
/// - # + blank 0 , ( and the index "<". Digits are those of Double.toString, rounded half up; widths count
/// units of UTF-16. kFailedPrecondition names the specifier that is unknown, has no argument, does not fit
/// its argument, or whose width or precision is beyond 100000. kResourceExhausted: a text beyond a gigabyte.
Result<std::string> JavaFormat(std::string_view format, std::span<const JavaFormatArgument> arguments);

/// The same of print("...", a, b): integers are longs.
Result<std::string> JavaFormat(std::string_view format, std::span<const Scalar* const> arguments);

}  // namespace heddle::ops
