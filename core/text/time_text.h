// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace heddle {

/// A time such as 500ms, 90s, 10m, 24h, 7d, or 0, in milliseconds; nullopt when malformed or longer than
/// `high`, which is then in `is_too_long`.
std::optional<int64_t> ParseTime(std::string_view text, int64_t high, bool* is_too_long = nullptr);

}  // namespace heddle
