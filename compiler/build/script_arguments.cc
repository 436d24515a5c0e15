// SPDX-License-Identifier: Apache-2.0
#include "compiler/build/script_arguments.h"

#include <charconv>
#include <optional>

#include "core/double_text.h"

namespace heddle::compiler {
namespace {

std::optional<int64_t> ParseInteger(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// As the lexer does for string literals: \b \t \n \f \r \" \' are replaced, any other backslash stays.
std::string ProcessEscapes(std::string_view text) {
  constexpr std::string_view kEscapes = "btnfr\"'";
  constexpr std::string_view kMeanings = "\b\t\n\f\r\"'";
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t escape =
        text[i] == '\\' && i + 1 < text.size() ? kEscapes.find(text[i + 1]) : std::string_view::npos;
    if (escape == std::string_view::npos) {
      result += text[i];
    } else {
      result += kMeanings[escape];
      ++i;
    }
  }
  return result;
}

}  // namespace

Scalar ArgumentValue(const std::string& text) {
  if (text == "TRUE") return Scalar(true);
  if (text == "FALSE") return Scalar(false);
  if (std::optional<int64_t> integer = ParseInteger(text)) return Scalar(*integer);
  if (std::optional<double> number = ParseDouble(text)) return Scalar(*number);
  std::string_view inner = text;
  if (inner.size() >= 2 && (inner.front() == '"' || inner.front() == '\'') && inner.back() == inner.front())
    inner = inner.substr(1, inner.size() - 2);
  return Scalar(ProcessEscapes(inner));
}

}  // namespace heddle::compiler
