// SPDX-License-Identifier: Apache-2.0
#include "compiler/editor/script_view.h"

#include <algorithm>
#include <utility>

#include "compiler/parse/diagnostics.h"
#include "compiler/parse/parser.h"

namespace heddle::compiler {
namespace {

ScriptFile ParseWhatParses(const std::string& path, const std::string& text) {
  Diagnostics diagnostics;
  return Parse(path, text, &diagnostics);
}

// The names before a "," or ")" or "=" of a list of parameters that begins behind token `at`.
std::vector<std::string> ParametersFrom(const std::vector<Token>& tokens, size_t at) {
  std::vector<std::string> parameters;
  int32_t open = 1;
  bool has_name = false;  // of the parameter that is read
  for (; at < tokens.size() && open > 0 && tokens[at].kind != Token::Kind::kEnd; ++at) {
    const Token& token = tokens[at];
    if (token.Is("{") || token.Is("}")) break;
    if (token.Is("(") || token.Is("[")) ++open;
    if (token.Is(")") || token.Is("]")) --open;
    if (open == 1 && token.Is(",")) has_name = false;
    const Token& next = tokens[std::min(at + 1, tokens.size() - 1)];
    const bool ends = next.Is(",") || next.Is("=") || next.Is(")");
    if (open != 1 || has_name || token.kind != Token::Kind::kIdentifier || !ends) continue;
    parameters.emplace_back(token.text);
    has_name = true;
  }
  return parameters;
}

std::vector<FunctionHeader> HeadersIn(const std::vector<Token>& tokens, size_t text_size) {
  std::vector<FunctionHeader> headers;
  for (size_t i = 0; i + 3 < tokens.size(); ++i) {
    if (tokens[i].kind != Token::Kind::kIdentifier || !tokens[i + 2].Is("function") ||
        !tokens[i + 3].Is("(") || (!tokens[i + 1].Is("=") && !tokens[i + 1].Is("<-")))
      continue;
    if (!headers.empty()) headers.back().end = tokens[i].offset;
    headers.push_back(
        {std::string(tokens[i].text), ParametersFrom(tokens, i + 4), tokens[i].offset, text_size});
  }
  return headers;
}

}  // namespace

ScriptView::ScriptView(std::string path_of_script, std::string text_of_script)
    : path(std::move(path_of_script)),
      text(std::move(text_of_script)),
      lines(text),
      tokens(Tokenize(text)),
      file(ParseWhatParses(path, text)),
      names(NamesIn(file)),
      headers(HeadersIn(tokens, text.size())) {}

const FunctionDefinition* ScriptView::FindFunction(std::string_view name) const {
  for (const FunctionDefinition& function : file.functions)
    if (function.name == name) return &function;
  return nullptr;
}

const Import* ScriptView::FindImport(std::string_view name_space) const {
  for (const Import& import : file.imports)
    if (import.name_space == name_space) return &import;
  return nullptr;
}

const NameUse* ScriptView::NameAt(const Place& place) const {
  const NameUse* found = nullptr;
  // Names do not overlap; of two that touch, the one that begins there.
  auto use = std::upper_bound(names.begin(), names.end(), place,
                              [](const Place& at, const NameUse& name) { return at < name.range.begin; });
  while (use != names.begin()) {
    --use;
    if (use->range.end < place) break;
    found = &*use;
    if (place < use->range.end) break;
  }
  return found;
}

std::string ScriptView::CommentAbove(int32_t line) const {
  std::vector<std::string_view> above;
  for (auto i = static_cast<size_t>(std::max(0, line - 1)); i > 0; --i) {
    std::string_view text_of_line = lines.Line(i - 1);
    if (!text_of_line.starts_with('#')) break;
    text_of_line.remove_prefix(text_of_line.starts_with("# ") ? 2 : 1);
    if (text_of_line.starts_with("SPDX-")) break;
    above.push_back(text_of_line);
  }
  std::string comment;
  for (auto text_of_line = above.rbegin(); text_of_line != above.rend(); ++text_of_line) {
    comment += *text_of_line;
    comment += '\n';
  }
  return comment;
}

}  // namespace heddle::compiler
