// SPDX-License-Identifier: Apache-2.0
#include "cluster/language_server/protocol_values.h"

#include <fmt/format.h>

namespace heddle::cluster {
namespace {

constexpr std::string_view kFile = "file://";

int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

const Json* FindMember(const Json& json, std::initializer_list<std::string_view> names) {
  const Json* at = &json;
  for (const std::string_view name : names) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(std::string(name));
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

std::optional<std::string> FindText(const Json& json, std::initializer_list<std::string_view> names) {
  const Json* const member = FindMember(json, names);
  if (member == nullptr || !member->is_string()) return std::nullopt;
  return member->get<std::string>();
}

std::optional<compiler::TextLines::EditorPlace> ReadPlace(const Json* json) {
  if (json == nullptr) return std::nullopt;
  const Json* const line = FindMember(*json, {"line"});
  const Json* const column = FindMember(*json, {"character"});
  if (line == nullptr || column == nullptr || !line->is_number_integer() || !column->is_number_integer())
    return std::nullopt;
  return compiler::TextLines::EditorPlace{line->get<int64_t>(), column->get<int64_t>()};
}

Json ToJson(const compiler::TextLines::EditorPlace& place) {
  return {{"line", place.line}, {"character", place.column}};
}

Json ToJson(const compiler::TextLines& lines, const compiler::SourceRange& range,
            compiler::TextLines::Units units) {
  return {{"start", ToJson(lines.EditorPlaceOf(range.begin, units))},
          {"end", ToJson(lines.EditorPlaceOf(range.end, units))}};
}

std::string PathOf(std::string_view address) {
  if (!address.starts_with(kFile)) return std::string(address);
  const std::string_view encoded = address.substr(std::min(address.find('/', kFile.size()), address.size()));
  std::string path;
  for (size_t i = 0; i < encoded.size(); ++i) {
    const bool is_coded = encoded[i] == '%' && i + 2 < encoded.size() && DigitOf(encoded[i + 1]) >= 0 &&
                          DigitOf(encoded[i + 2]) >= 0;
    if (is_coded) {
      path += static_cast<char>(DigitOf(encoded[i + 1]) * 16 + DigitOf(encoded[i + 2]));
      i += 2;
    } else {
      path += encoded[i];
    }
  }
  return path;
}

std::string AddressOf(std::string_view path) {
  if (!path.starts_with('/')) return std::string(path);
  std::string address(kFile);
  for (const char c : path) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          std::string_view("/-._~").find(c) != std::string_view::npos;
    if (is_plain) {
      address += c;
    } else {
      address += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return address;
}

}  // namespace heddle::cluster
