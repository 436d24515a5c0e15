// SPDX-License-Identifier: Apache-2.0
#include "engine/interactive/definitions.h"

#include <algorithm>

#include "core/text/utf8.h"

namespace heddle::engine {
namespace {

using compiler::Place;
using compiler::SourceRange;

// The text between two places of a text that begins at line `line`; with `blanks` a blank for every other
// character instead of nothing.
std::string Cut(const std::string& text, int32_t line, const std::vector<SourceRange>& ranges, bool blanks) {
  std::string result;
  Place place = {line, 1};
  for (size_t i = 0; i < text.size();) {
    const bool is_inside = std::any_of(ranges.begin(), ranges.end(), [&](const SourceRange& range) {
      return place >= range.begin && place < range.end;
    });
    if (text[i] == '\n') {
      if (blanks || is_inside) result.push_back('\n');
      place = {place.line + 1, 1};
      ++i;
      continue;
    }
    const size_t length = std::max<size_t>(1, Utf8Length(text, i));
    if (is_inside) {
      result.append(text, i, length);
    } else if (blanks) {
      result.push_back(' ');
    }
    ++place.column;
    i += length;
  }
  return result;
}

int32_t LinesOf(const std::string& text) {
  const auto ends = static_cast<int32_t>(std::count(text.begin(), text.end(), '\n'));
  return ends + (text.empty() || text.back() != '\n' ? 1 : 0);
}

}  // namespace

std::string Definitions::TextWith(const std::string& entry) const {
  std::string text;
  int32_t line = 1;
  const auto go_to = [&](int32_t next) {
    text.append(static_cast<size_t>(next - line), '\n');
    line = next;
  };
  for (const Entry& older : entries_) {
    go_to(older.line);
    std::vector<SourceRange> ranges;
    for (const Definition& definition : older.definitions) ranges.push_back(definition.range);
    const std::string kept = Cut(older.text, older.line, ranges, /*blanks=*/true);
    text += kept;
    line += static_cast<int32_t>(std::count(kept.begin(), kept.end(), '\n'));
  }
  go_to(next_line_);
  return text + entry;
}

void Definitions::Add(const std::string& entry, const compiler::ScriptFile* parsed) {
  Entry added = {next_line_, entry, {}};
  const int32_t first = next_line_;
  next_line_ += LinesOf(entry);
  if (parsed == nullptr) return;
  for (const compiler::FunctionDefinition& function : parsed->functions) {
    if (function.range.begin.line < first) continue;
    Replace({function.name, function.range}, &added);
    std::erase_if(functions_, [&](const FunctionHead& head) { return head.name == function.name; });
    FunctionHead& head = functions_.emplace_back();
    head.name = function.name;
    head.line = function.range.begin.line;
    for (const compiler::ParameterDefinition& parameter : function.parameters)
      head.parameters.push_back(parameter.name);
    head.text = Cut(entry, first, {function.range}, /*blanks=*/false);
    head.text.resize(std::min(head.text.find('{'), head.text.size()));
    head.text.resize(head.text.find_last_not_of(" \t\n") + 1);
    std::replace(head.text.begin(), head.text.end(), '\n', ' ');
  }
  for (const compiler::Statement& statement : parsed->statements) {
    if (statement.range.begin.line < first) continue;
    if (statement.kind == compiler::Statement::Kind::kSource) {
      Replace({statement.name + "::", statement.range}, &added);
      std::erase(name_spaces_, statement.name);
      name_spaces_.push_back(statement.name);
    } else if (statement.kind == compiler::Statement::Kind::kSetDirectory) {
      added.definitions.push_back({"", statement.range});
    }
  }
  if (!added.definitions.empty()) entries_.push_back(std::move(added));
}

// An older definition of the same name holds no longer.
void Definitions::Replace(Definition definition, Entry* entry) {
  const auto is_older = [&](const Definition& older) { return older.name == definition.name; };
  for (Entry& older : entries_) std::erase_if(older.definitions, is_older);
  std::erase_if(entries_, [](const Entry& older) { return older.definitions.empty(); });
  entry->definitions.push_back(std::move(definition));
}

void Definitions::Clear() {
  entries_.clear();
  functions_.clear();
  name_spaces_.clear();
}

}  // namespace heddle::engine
