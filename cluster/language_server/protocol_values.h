// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/editor/text_lines.h"

namespace heddle::cluster {

using Json = nlohmann::json;

/// Numbers of the protocol's errors.
enum class ProtocolError : int {
  kParseError = -32700,
  kInvalidRequest = -32600,
  kMethodNotFound = -32601,
  kInvalidParams = -32602,
  kNotInitialized = -32002,
  kRequestCancelled = -32800,
  kRequestFailed = -32803,
};

/// The member at the end of a way of names; nullptr where an object or a name is missing.
const Json* FindMember(const Json& json, std::initializer_list<std::string_view> names);
/// A member that is a text; nullopt where it is none.
std::optional<std::string> FindText(const Json& json, std::initializer_list<std::string_view> names);

/// {"line": 0, "character": 0}; nullopt of anything else.
std::optional<compiler::TextLines::EditorPlace> ReadPlace(const Json* json);
Json ToJson(const compiler::TextLines::EditorPlace& place);
Json ToJson(const compiler::TextLines& lines, const compiler::SourceRange& range,
            compiler::TextLines::Units units);

/// The path of a "file:" address; any other address as it is.
std::string PathOf(std::string_view address);
/// "file:///folder/a%20b.dml" of an absolute path; any other text as it is.
std::string AddressOf(std::string_view path);

}  // namespace heddle::cluster
