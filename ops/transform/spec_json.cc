// SPDX-License-Identifier: Apache-2.0
#include "ops/transform/spec_json.h"

#include "core/text/double_text.h"
#include "core/text/utf8.h"
#include "ops/text/lenient_json.h"

namespace heddle::ops {

using Json = nlohmann::json;

Result<Json> ParseSpecJson(std::string_view op, std::string_view text, std::string_view example) {
  Json json = Json::parse(StrictJson(text), nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) return json;
  return InvalidArgument("{}: the spec is not a JSON object: '{}'", op, ShownInLine(text, 60))
      .WithNote(fmt::format("{} is one", example));
}

std::string LowerLetters(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

std::string TextOfJson(const Json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string ShownJson(const Json& value) { return ShownInLine(TextOfJson(value), 40); }

std::optional<int64_t> WholeNumberOfJson(const Json& value) {
  if (value.is_number_integer()) return value.get<int64_t>();
  const std::optional<double> number = value.is_string()   ? ParseDouble(value.get_ref<const std::string&>())
                                       : value.is_number() ? value.get<double>()
                                                           : std::optional<double>();
  if (!number || !(*number >= -0x1p53 && *number <= 0x1p53)) return std::nullopt;
  const auto whole = static_cast<int64_t>(*number);
  return static_cast<double>(whole) == *number ? std::optional(whole) : std::nullopt;
}

std::optional<bool> FlagOfJson(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  const std::string text = LowerLetters(TextOfJson(value));
  return text == "true" ? std::optional(true) : text == "false" ? std::optional(false) : std::nullopt;
}

}  // namespace heddle::ops
