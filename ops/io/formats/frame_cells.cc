// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/frame_cells.h"

#include <charconv>
#include <cmath>
#include <string>

#include "core/text/utf8.h"
#include "core/values/scalar.h"
#include "ops/io/formats/fields.h"
#include "ops/io/formats/options.h"

namespace heddle::ops {

std::optional<double> DoubleInText(std::string_view text, ColumnType type) {
  double plain = 0;
  const char* at = text.data();
  const bool is_plain = TakePlainNumber(&at, at + text.size(), &plain) && at == text.data() + text.size();
  const std::optional<double> number = is_plain ? plain : ParseNumber(text);
  return number && type == ColumnType::kFloat32 ? static_cast<double>(static_cast<float>(*number)) : number;
}

std::optional<int64_t> IntegerInText(std::string_view text, ColumnType type) {
  int64_t whole = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (error != std::errc() || end != text.data() + text.size()) {
    const std::optional<double> number = ParseNumber(text);
    if (!number || !(std::fabs(*number) < 0x1p63)) return std::nullopt;
    whole = TruncateToInteger(*number);
  }
  if (type == ColumnType::kInteger32 && (whole < INT32_MIN || whole > INT32_MAX)) return std::nullopt;
  return whole;
}

std::optional<bool> BooleanInText(std::string_view text) {
  const std::string word = Lower(text);
  if (word == "true" || word == "t" || word == "1") return true;
  if (word == "false" || word == "f" || word == "0") return false;
  return std::nullopt;
}

bool IsOneCharacter(std::string_view text) { return !text.empty() && Utf8Length(text, 0) == text.size(); }

}  // namespace heddle::ops
