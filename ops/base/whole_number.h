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

}  // namespace heddle::ops
