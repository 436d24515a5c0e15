// SPDX-License-Identifier: Apache-2.0
#include "cluster/language_server/diagnostics_message.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/parse/load_scripts.h"

namespace heddle::cluster {
namespace {

// Numbers of the protocol.
constexpr int kError = 1, kWarning = 2;

// Where the script brings in another file: its source(), else its first line.
compiler::SourceRange WhereSourced(const compiler::ScriptView& script, const std::string& path) {
  for (const compiler::Import& import : script.file.imports) {
    const std::vector<std::string> places = compiler::ImportCandidates(import, {});
    if (std::find(places.begin(), places.end(), path) != places.end()) return import.range;
  }
  return {{1, 1}, {1, 1}};
}

// An empty range is shown as one character.
compiler::SourceRange Visible(const compiler::ScriptView& script, compiler::SourceRange range) {
  if (range.begin.line == 0) range = {{1, 1}, {1, 1}};
  if (!(range.begin == range.end)) return range;
  const std::string_view line = script.lines.Line(
      std::min(script.lines.size(), static_cast<size_t>(std::max(range.begin.line, 1))) - 1);
  if (static_cast<size_t>(range.begin.column) <= line.size()) {
    ++range.end.column;
  } else if (range.begin.column > 1) {
    --range.begin.column;
  }
  return range;
}

std::string MessageOf(const compiler::Diagnostic& diagnostic) {
  std::string message = diagnostic.message;
  for (const std::string& note : diagnostic.notes) message += "\n" + note;
  if (!diagnostic.suggestion.empty()) message += fmt::format("\ndid you mean '{}'?", diagnostic.suggestion);
  return message;
}

}  // namespace

Json DiagnosticsMessage(const OpenDocument& document, const CheckedDocument& checked,
                        compiler::TextLines::Units units,
                        const std::function<std::string(const std::string& path)>& address_of) {
  const compiler::ScriptView& script = *checked.script;
  Json items = Json::array();
  for (const compiler::Severity severity : {compiler::Severity::kError, compiler::Severity::kWarning}) {
    for (const compiler::Diagnostic* diagnostic : checked.diagnostics.Sorted(severity)) {
      const bool is_here = diagnostic->file == script.path || diagnostic->file.empty();
      const compiler::SourceRange range =
          is_here ? diagnostic->range : WhereSourced(script, diagnostic->file);
      Json item = {{"range", ToJson(script.lines, Visible(script, range), units)},
                   {"severity", severity == compiler::Severity::kError ? kError : kWarning},
                   {"source", "heddle"},
                   {"message", MessageOf(*diagnostic)}};
      if (!is_here) {
        const compiler::Place& place = diagnostic->range.begin;
        item["message"] =
            fmt::format("{}:{}:{}: {}", diagnostic->file, place.line, place.column, MessageOf(*diagnostic));
        if (const std::string address = address_of(checked.whole_paths.at(diagnostic->file));
            !address.empty()) {
          const Json there = {{"line", std::max(place.line - 1, 0)},
                              {"character", std::max(place.column - 1, 0)}};
          item["relatedInformation"] =
              Json::array({{{"location", {{"uri", address}, {"range", {{"start", there}, {"end", there}}}}},
                            {"message", diagnostic->message}}});
        }
      }
      items.push_back(std::move(item));
    }
  }
  return {{"uri", document.address}, {"version", document.version}, {"diagnostics", std::move(items)}};
}

}  // namespace heddle::cluster
