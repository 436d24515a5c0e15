// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace heddle {

constexpr int64_t kDayMs = 86'400'000;

/// A time such as 500ms, 90s, 10m, 24h, 7d, or 0, in milliseconds; nullopt when malformed or longer than
/// `high`, which is then in `is_too_long`.
std::optional<int64_t> ParseTime(std::string_view text, int64_t high, bool* is_too_long = nullptr);

/// A moment, in milliseconds since 1970, as strftime writes it in UTC: "2026-11-30 06:47 UTC".
std::string UtcTime(int64_t ms, const char* form = "%Y-%m-%d %H:%M UTC");

}  // namespace heddle
