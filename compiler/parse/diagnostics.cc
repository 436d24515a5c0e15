// SPDX-License-Identifier: Apache-2.0
#include "compiler/parse/diagnostics.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "core/text/message_lines.h"
#include "core/text/utf8.h"

namespace heddle::compiler {
namespace {

// One line of a script, made fit to show: tabs kept (the caret line repeats them), other control characters
// and bytes that are no UTF-8 replaced. Element i is the text of column i + 1.
std::vector<std::string> CharactersOfLine(std::string_view text, int32_t line) {
  size_t begin = 0;
  for (int32_t i = 1; i < line; ++i) {
    const size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) return {};
    begin = end + 1;
  }
  if (line == 1 && text.substr(0, 3) == "\xEF\xBB\xBF") begin = 3;
  std::string_view content = text.substr(begin, std::min(text.find('\n', begin), text.size()) - begin);
  if (!content.empty() && content.back() == '\r') content.remove_suffix(1);
  std::vector<std::string> characters;
  for (size_t i = 0; i < content.size();) {
    const size_t length = Utf8Length(content, i);
    const auto byte = static_cast<unsigned char>(content[i]);
    const bool shown = length > 1 || (length == 1 && (byte >= 0x20 || byte == '\t') && byte != 0x7f);
    characters.push_back(shown ? std::string(content.substr(i, length)) : "\xEF\xBF\xBD");
    i += std::max<size_t>(1, length);
  }
  return characters;
}

// The line and the carets below it; a long line is cut around the carets.
std::string CodeFrame(std::string_view text, const SourceRange& range) {
  constexpr size_t kWidth = 120;
  constexpr size_t kBefore = 60;
  const std::vector<std::string> characters = CharactersOfLine(text, range.begin.line);
  const auto column = static_cast<size_t>(std::max(range.begin.column, 1)) - 1;
  if (column > characters.size()) return "";
  size_t carets = 1;
  if (range.end.line > range.begin.line) {
    carets = characters.size() - column;
  } else if (range.end.line == range.begin.line && range.end.column > range.begin.column) {
    carets = static_cast<size_t>(range.end.column - range.begin.column);
  }
  const size_t begin = characters.size() > kWidth && column > kBefore ? column - kBefore : 0;
  const size_t end = std::min(characters.size(), begin + kWidth);
  carets = std::clamp<size_t>(carets, 1, std::max<size_t>(1, end - std::min(column, end)));

  std::string code = begin > 0 ? "..." : "";
  std::string marks = begin > 0 ? "   " : "";
  for (size_t i = begin; i < end; ++i) {
    code += characters[i];
    if (i < column) marks += characters[i] == "\t" ? "\t" : " ";
  }
  if (end < characters.size()) code += "...";
  marks += "^" + std::string(carets - 1, '~');
  const std::string number = fmt::format("{:>5}", range.begin.line);
  return number + " | " + code + "\n" + std::string(number.size(), ' ') + " | " + marks + "\n";
}

std::string Lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

// Optimal string alignment: no letter is touched twice.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      d[i][j] =
          std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

void Diagnostics::AddSource(const std::string& file, std::string text) {
  Source& source = sources_.try_emplace(file, Source{sources_.size(), ""}).first->second;
  source.text = std::move(text);
}

Diagnostic& Diagnostics::Error(const std::string& file, const SourceRange& range, std::string message) {
  ++errors_;
  diagnostics_.push_back({Severity::kError, file, range, std::move(message), {}, "", false});
  return diagnostics_.back();
}

Diagnostic& Diagnostics::Warning(const std::string& file, const SourceRange& range, std::string message) {
  diagnostics_.push_back({Severity::kWarning, file, range, std::move(message), {}, "", false});
  return diagnostics_.back();
}

void Diagnostics::AddStatus(const Status& status) {
  if (status.ok()) return;
  const SourcePosition& position = status.position();
  const Place place{position.line, position.column};
  Diagnostic& diagnostic = Error(position.file, {place, place}, status.message());
  diagnostic.notes = status.notes();
  diagnostic.is_missing = status.code() == StatusCode::kUnimplemented;
}

void Diagnostics::AddNotes(size_t first, const std::vector<std::string>& notes) {
  for (size_t i = first; i < diagnostics_.size(); ++i)
    diagnostics_[i].notes.insert(diagnostics_[i].notes.end(), notes.begin(), notes.end());
}

std::string Diagnostics::TakeErrors(size_t first) {
  std::string text;
  for (; diagnostics_.size() > first; diagnostics_.pop_back()) {
    const Diagnostic& last = diagnostics_.back();
    if (last.severity != Severity::kError) continue;
    --errors_;
    text = fmt::format("{}: {}", last.range.Position(last.file).ToString(), last.message);
  }
  return text;
}

size_t Diagnostics::OrderOf(const std::string& file) const {
  const auto found = sources_.find(file);
  return found == sources_.end() ? sources_.size() : found->second.order;
}

std::vector<const Diagnostic*> Diagnostics::Sorted(Severity severity) const {
  std::vector<const Diagnostic*> result;
  for (const Diagnostic& diagnostic : diagnostics_) {
    if (diagnostic.severity == severity) result.push_back(&diagnostic);
  }
  std::stable_sort(result.begin(), result.end(), [&](const Diagnostic* a, const Diagnostic* b) {
    if (a->file != b->file) {
      const size_t order_a = OrderOf(a->file);
      const size_t order_b = OrderOf(b->file);
      return order_a != order_b ? order_a < order_b : a->file < b->file;
    }
    return a->range.begin < b->range.begin;
  });
  // The same fault may be found twice, for example in a function that is compiled for two calls.
  std::set<std::tuple<std::string_view, Place, std::string_view>> seen;
  std::erase_if(result, [&](const Diagnostic* diagnostic) {
    return !seen.emplace(diagnostic->file, diagnostic->range.begin, diagnostic->message).second;
  });
  return result;
}

std::string Diagnostics::Render(const Diagnostic& diagnostic) const {
  const SourcePosition position = diagnostic.range.Position(diagnostic.file);
  const std::string place = position.ToString();
  const char* severity = diagnostic.severity == Severity::kError ? "error" : "warning";
  std::string text =
      WithShortLines(place.empty() ? fmt::format("{}: {}\n", severity, diagnostic.message)
                                   : fmt::format("{}: {}: {}\n", place, severity, diagnostic.message));
  const auto source = sources_.find(diagnostic.file);
  if (source != sources_.end() && position.IsKnown())
    text += CodeFrame(source->second.text, diagnostic.range);
  size_t lines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  const size_t last = diagnostic.suggestion.empty() ? 0 : 1;
  for (const std::string& note : diagnostic.notes) {
    if (lines + last >= kMostLines) break;
    text += WithShortLines(note) + "\n";
    ++lines;
  }
  if (last > 0) text += fmt::format("did you mean '{}'?\n", diagnostic.suggestion);
  return text;
}

std::string Diagnostics::RenderAll(Severity severity) const {
  const std::vector<const Diagnostic*> sorted = Sorted(severity);
  std::string text;
  for (size_t i = 0; i < sorted.size() && i < kMostShown; ++i) text += Render(*sorted[i]);
  if (sorted.size() > kMostShown) {
    const size_t more = sorted.size() - kMostShown;
    const char* word = severity == Severity::kError ? "error" : "warning";
    text += fmt::format("and {} more {}{}\n", more, word, more == 1 ? "" : "s");
  }
  return text;
}

Status Diagnostics::ToStatus() const {
  if (!HasErrors()) return OkStatus();
  std::string text = RenderAll(Severity::kError);
  text.pop_back();
  // Want of memory is no fault of the script, also where a constant was computed.
  const bool lacks_memory =
      std::any_of(diagnostics_.begin(), diagnostics_.end(), [](const Diagnostic& found) {
        return found.severity == Severity::kError && found.message.starts_with("out of memory: ");
      });
  return Status(lacks_memory ? StatusCode::kResourceExhausted : StatusCode::kInvalidArgument,
                std::move(text));
}

std::string SuggestName(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr size_t kLongest = 80;
  if (name.size() > kLongest || name.empty()) return "";
  const std::string lower = Lower(name);
  size_t best = name.size() <= 5 ? 1 : name.size() <= 9 ? 2 : 3;
  // A name of one or two letters is near everything.
  if (name.size() <= 2) best = 0;
  ++best;
  size_t best_begin = 0;  // letters at which the suggestion begins as the name does
  std::string suggestion;
  for (const std::string& candidate : candidates) {
    if (candidate == name || candidate.size() > kLongest) continue;
    const size_t difference =
        candidate.size() > name.size() ? candidate.size() - name.size() : name.size() - candidate.size();
    if (difference > best || (suggestion.empty() && difference == best)) continue;
    const std::string other = Lower(candidate);
    const size_t distance = Distance(lower, other);
    const auto begin = static_cast<size_t>(
        std::mismatch(lower.begin(), lower.end(), other.begin(), other.end()).first - lower.begin());
    const bool is_nearer = distance < best || (!suggestion.empty() && distance == best && begin > best_begin);
    if (!is_nearer) continue;
    best = distance;
    best_begin = begin;
    suggestion = candidate;
  }
  return suggestion;
}

}  // namespace heddle::compiler
