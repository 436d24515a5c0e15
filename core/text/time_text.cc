// SPDX-License-Identifier: Apache-2.0
#include "core/text/time_text.h"

#include <array>
#include <charconv>
#include <ctime>
#include <utility>

namespace heddle {

std::optional<int64_t> ParseTime(std::string_view text, int64_t high, bool* is_too_long) {
  int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  int64_t unit_ms = unit.empty() && value == 0 ? 1 : 0;
  for (const auto& [name, ms] : {std::pair<std::string_view, int64_t>{"ms", 1},
                                 {"s", 1'000},
                                 {"m", 60'000},
                                 {"min", 60'000},
                                 {"h", 3'600'000},
                                 {"d", kDayMs}})
    if (unit == name) unit_ms = ms;
  const bool is_huge = error == std::errc::result_out_of_range && text[0] != '-';
  if ((error != std::errc() && !is_huge) || (value < 0 && !is_huge) || unit_ms == 0) return std::nullopt;
  const bool is_long = is_huge || value > high / unit_ms;
  if (is_too_long != nullptr) *is_too_long = is_long;
  return is_long ? std::nullopt : std::optional(value * unit_ms);
}

std::string UtcTime(int64_t ms, const char* form) {
  const int64_t second = ms / 1000 - (ms % 1000 < 0 ? 1 : 0);
  const auto seconds = static_cast<std::time_t>(second);
  std::tm fields{};
  gmtime_r(&seconds, &fields);
  std::array<char, 64> text{};
  return {text.data(), std::strftime(text.data(), text.size(), form, &fields)};
}

}  // namespace heddle
