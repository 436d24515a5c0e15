// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace heddle {

/// The value (a number, or of an enumeration) that `names` has as `name` at its place; nullopt for a word
/// that is none of them.
template <typename Value>
std::optional<Value> ValueNamed(std::span<const std::string_view> names, std::string_view name) {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<Value>(i);
  return std::nullopt;
}

}  // namespace heddle
