// SPDX-License-Identifier: Apache-2.0
#include "engine/report/line_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "core/text/utf8.h"
#include "engine/report/html.h"

namespace heddle::engine {
namespace {

// A smaller share is not what took the time.
constexpr double kMuch = 0.25;

using LineNumber = std::pair<std::string, int32_t>;

void Add(const PlaceStatistics& place, LineTimes* times) {
  const int64_t acts = place.name.empty() ? 0 : place.acts;
  LineTime& own = times->files[place.file][place.line];
  own.own_ns += place.ns;
  own.acts += acts;
  // A recursion is on the way to itself; its time counts once.
  std::set<LineNumber> lines = {{place.file, place.line}};
  for (const PlaceStatistics::Call& call : place.calls) lines.insert({call.file, call.line});
  for (const auto& [file, line] : lines) times->files[file][line].total_ns += place.ns;
}

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r;{");
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r;{") - begin + 1);
}

// Without what follows a '#' outside of texts.
std::string_view WithoutComment(std::string_view text) {
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0 && c == '\\') {
      ++i;
    } else if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#') {
      return text.substr(0, i);
    }
  }
  return text;
}

// What stands right of the first '=' or '<-' outside of brackets and texts.
std::string_view WithoutTarget(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\'') return text;
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (depth != 0) continue;
    const char next = i + 1 < text.size() ? text[i + 1] : ' ';
    const char before = i > 0 ? text[i - 1] : ' ';
    if (c == '<' && next == '-') return Trimmed(text.substr(i + 2));
    if (c == '=' && next != '=' && std::string_view("=!<>").find(before) == std::string_view::npos)
      return Trimmed(text.substr(i + 1));
  }
  return text;
}

std::string Shortened(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  size_t end = most - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // within a letter
  return std::string(text.substr(0, end)) + "...";
}

// The line of the largest time by `of`; nullptr where there is none.
const std::pair<const int32_t, LineTime>* Largest(const std::map<int32_t, LineTime>& lines,
                                                  int64_t LineTime::*of) {
  const auto largest = std::ranges::max_element(
      lines, [&](const auto& a, const auto& b) { return a.second.*of < b.second.*of; });
  return largest == lines.end() || largest->first <= 0 ? nullptr : &*largest;
}

// "t(X) %*% X at line 7"
std::string Described(const RunRecord& record, const std::string& file, int32_t line,
                      const std::function<std::string(const std::string& code)>& quote) {
  const std::string statement = StatementAt(record, file, line);
  const std::string place =
      file == record.script ? fmt::format("line {}", line) : fmt::format("line {} of {}", line, quote(file));
  return statement.empty() ? place : fmt::format("{} at {}", quote(statement), place);
}

// Where in the functions that a line calls the time goes: the line with the most time of its own.
std::string Inside(const RunRecord& record, const LineTimes& times, int32_t line, int64_t total_ns,
                   const std::function<std::string(const std::string& code)>& quote) {
  std::map<LineNumber, int64_t> inside;
  for (const SessionStatistics& rank : record.statistics)
    for (const auto& [key, place] : rank.places) {
      const bool is_from_there = std::ranges::any_of(place.calls, [&](const PlaceStatistics::Call& call) {
        return call.file == record.script && call.line == line;
      });
      if (is_from_there) inside[{place.file, place.line}] += place.ns;
    }
  const auto largest =
      std::ranges::max_element(inside, [](const auto& a, const auto& b) { return a.second < b.second; });
  if (largest == inside.end() || times.all_ns == 0) return "";
  const double share =
      static_cast<double>(largest->second) / static_cast<double>(std::max<int64_t>(total_ns, 1));
  if (share < kMuch) return "";
  return fmt::format(" Of that, {} was {}.", Percent(share),
                     Described(record, largest->first.first, largest->first.second, quote));
}

}  // namespace

LineTimes TimesOf(const RunRecord& record) {
  LineTimes times;
  for (const SessionStatistics& rank : record.statistics) {
    int64_t counted_ns = rank.planning_ns;
    for (const auto& [key, place] : rank.places) {
      Add(place, &times);
      counted_ns += place.ns;
    }
    times.planning_ns += rank.planning_ns;
    // Threads that work at once take more than the time that passes.
    times.all_ns += std::max(counted_ns, rank.elapsed_ns);
  }
  return times;
}

std::string StatementAt(const RunRecord& record, const std::string& file, int32_t line, size_t most) {
  const auto source = record.sources.find(file);
  if (source == record.sources.end() || line <= 0) return "";
  std::string_view rest = source->second;
  for (int32_t at = 1; at < line; ++at) {
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) return "";
    rest.remove_prefix(end + 1);
  }
  const std::string_view text = Trimmed(WithoutComment(rest.substr(0, rest.find('\n'))));
  return Shortened(EscapeInvalidUtf8(std::string(WithoutTarget(text))), most);
}

std::string FirstSentence(const RunRecord& record, const LineTimes& times,
                          const std::function<std::string(const std::string& code)>& quote) {
  int64_t elapsed_ns = 0;
  for (const SessionStatistics& rank : record.statistics) elapsed_ns = std::max(elapsed_ns, rank.elapsed_ns);
  const std::string elapsed = ShortTime(elapsed_ns);
  const auto share = [&](int64_t ns) {
    return times.all_ns == 0 ? 0.0 : static_cast<double>(ns) / static_cast<double>(times.all_ns);
  };
  const auto lines = times.files.find(record.script);
  const auto* line = lines == times.files.end() ? nullptr : Largest(lines->second, &LineTime::total_ns);
  if (line == nullptr && times.planning_ns == 0) return fmt::format("The run took {}.", elapsed);
  if (line == nullptr || times.planning_ns > line->second.total_ns)
    return fmt::format("{} of the {} went into making plans.", Percent(share(times.planning_ns)), elapsed);

  const LineTime& time = line->second;
  std::string text;
  if (share(time.total_ns) < kMuch)
    text = fmt::format("No line took most of the {}: the first is {} with {}.", elapsed,
                       Described(record, record.script, line->first, quote), Percent(share(time.total_ns)));
  else
    text = fmt::format("{} of the {} went into {}.", Percent(share(time.total_ns)), elapsed,
                       Described(record, record.script, line->first, quote));
  if (time.own_ns * 2 < time.total_ns) text += Inside(record, times, line->first, time.total_ns, quote);
  return text;
}

}  // namespace heddle::engine
