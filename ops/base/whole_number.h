// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "core/values/scalar.h"

// The one way from a number of a script to an index, a size, a seed or a bound of a loop.
namespace heddle::ops {

/// x without its fraction, as TruncateToInteger has it. nullopt for what no 64-bit integer is: NaN,
/// infinities, 2^63 and beyond, strings.
std::optional<int64_t> WholeNumber(const Scalar& x);

/// The same, or an error with `code` that names the argument and its value: "rand: seed must be ...".
Result<int64_t> RequireWholeNumber(const Scalar& x, std::string_view op, std::string_view what,
                                   StatusCode code);

/// A number of rows or columns. An error with `code` when it is negative, NaN or a string; kResourceExhausted
/// when no matrix has so many.
Result<int64_t> RequireSize(const Scalar& x, std::string_view op, std::string_view what, StatusCode code);

/// Keys of groups and tables count from 1: whether a number is one, and which place it is, from 0, as
/// TruncateToInteger has it. For loops over many keys, which are below 2^62.
inline bool IsKey(double key) { return key + 0x1p-53 >= 1; }
inline int64_t PlaceOfKey(double key) { return static_cast<int64_t>(key + 0x1p-53) - 1; }

}  // namespace heddle::ops
