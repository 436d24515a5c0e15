// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace heddle {

/// A function that eval() calls with a list, when defaults of its parameters have to be computed, is called
/// by one of the compiler's. That one has for each such parameter p a Boolean of this name more, behind all
/// of the function's: whether the list has an element for p. Where it has none, p has no value before the
/// default.
inline std::string PresenceOf(std::string_view parameter) { return "%has " + std::string(parameter); }

/// Whether a parameter is one that PresenceOf() names.
inline bool IsPresence(std::string_view parameter) { return parameter.starts_with("%has "); }

}  // namespace heddle
