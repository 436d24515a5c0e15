// SPDX-License-Identifier: Apache-2.0
#include "compiler/build/script_arguments.h"

#include <charconv>
#include <optional>

#include "compiler/parse/lexer.h"
#include "core/text/double_text.h"

namespace heddle::compiler {
namespace {

std::optional<int64_t> ParseInteger(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
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
  return Scalar(Unescape(inner));
}

}  // namespace heddle::compiler
