// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/editor/script_names.h"
#include "compiler/editor/text_lines.h"
#include "compiler/parse/ast.h"
#include "compiler/parse/lexer.h"

namespace heddle::compiler {

/// A function whose header stands in a text, which need not parse behind it.
struct FunctionHeader {
  std::string name;
  std::vector<std::string> parameters;
  size_t begin = 0;  ///< Offset of its name.
  size_t end = 0;    ///< Offset where the next one begins, or the text ends.
};

/// A script as an editor shows it: text, tokens, what of it parses, and its names. Does not change.
struct ScriptView {
  ScriptView(std::string path, std::string text);
  ScriptView(const ScriptView&) = delete;
  ScriptView& operator=(const ScriptView&) = delete;

  const std::string path;
  const std::string text;
  const TextLines lines;
  const std::vector<Token> tokens;
  const ScriptFile file;  ///< Without what has errors.
  const std::vector<NameUse> names;
  const std::vector<FunctionHeader> headers;  ///< In the order of the text.

  const FunctionDefinition* FindFunction(std::string_view name) const;
  /// The path that source() binds to a namespace; nullptr: none.
  const Import* FindImport(std::string_view name_space) const;
  /// The name at a place, also right behind it; nullptr: none.
  const NameUse* NameAt(const Place& place) const;
  /// The comment lines right above a line (from 1), without "#".
  std::string CommentAbove(int32_t line) const;
};

using ScriptViewPointer = std::shared_ptr<const ScriptView>;

}  // namespace heddle::compiler
