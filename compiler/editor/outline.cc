// SPDX-License-Identifier: Apache-2.0
#include "compiler/editor/outline.h"

#include <algorithm>
#include <set>
#include <utility>

namespace heddle::compiler {

std::vector<OutlineItem> OutlineOf(const ScriptView& script) {
  using Kind = OutlineItem::Kind;
  std::vector<OutlineItem> items;
  for (const FunctionDefinition& function : script.file.functions) {
    std::string detail;
    for (const ParameterDefinition& parameter : function.parameters)
      detail += (detail.empty() ? "" : ", ") + parameter.name;
    items.push_back(
        {Kind::kFunction, function.name, "(" + detail + ")", function.range, function.name_range});
  }
  for (const Import& import : script.file.imports)
    items.push_back({Kind::kNameSpace, import.name_space, import.path, import.range, import.range});
  std::set<std::string_view> seen;
  for (const NameUse& use : script.names) {
    if (use.kind != NameUse::Kind::kVariable || use.scope != 0 || !use.is_definition) continue;
    if (!seen.insert(use.name).second) continue;
    const SourceRange range =
        use.statement != nullptr && use.statement->body.empty() ? use.statement->range : use.range;
    items.push_back({Kind::kVariable, use.name, "", range, use.range});
  }
  std::stable_sort(items.begin(), items.end(),
                   [](const OutlineItem& a, const OutlineItem& b) { return a.range.begin < b.range.begin; });
  return items;
}

std::vector<Fold> FoldsIn(const ScriptView& script) {
  std::vector<Fold> folds;
  std::vector<int32_t> open;
  for (const Token& token : script.tokens) {
    if (token.Is("{") || token.Is("(") || token.Is("[")) open.push_back(token.range.begin.line);
    if ((!token.Is("}") && !token.Is(")") && !token.Is("]")) || open.empty()) continue;
    // The line of the bracket that closes stays to be seen.
    const int32_t first = open.back() - 1, last = token.range.begin.line - 2;
    open.pop_back();
    if (last > first) folds.push_back({first, last, false});
  }
  const auto is_comment = [&](size_t line) {
    const std::string_view text = script.lines.Line(line);
    const size_t at = text.find_first_not_of(" \t");
    return at != std::string_view::npos && text[at] == '#';
  };
  for (size_t line = 0; line < script.lines.size(); ++line) {
    const size_t first = line;
    while (line < script.lines.size() && is_comment(line)) ++line;
    if (line > first + 1)
      folds.push_back({static_cast<int64_t>(first), static_cast<int64_t>(line) - 1, true});
  }
  std::sort(folds.begin(), folds.end());
  // A line begins one fold: the largest.
  std::vector<Fold> first_of_line;
  for (const Fold& fold : folds) {
    if (!first_of_line.empty() && first_of_line.back().first == fold.first) {
      first_of_line.back() = std::max(first_of_line.back(), fold);
    } else {
      first_of_line.push_back(fold);
    }
  }
  return first_of_line;
}

}  // namespace heddle::compiler
