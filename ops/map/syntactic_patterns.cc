// SPDX-License-Identifier: Apache-2.0
#include "ops/map/syntactic_patterns.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "core/text/double_text.h"
#include "ops/frame/text_column.h"
#include "ops/text/java_text.h"

namespace heddle::ops {
namespace {

char ClassOf(char16_t unit) {
  if (unit >= '0' && unit <= '9') return 'd';
  if (IsLetter(unit)) return LowerCase(unit) == unit ? 'l' : 'u';
  if (unit == ' ' || unit == 0xA0 || (unit >= 0x2000 && unit <= 0x200A)) return 's';
  if (unit == '.') return 't';
  return unit == '-' ? '-' : 'y';
}

std::string Runs(std::string_view text) {
  std::string kinds;
  for (const char16_t unit : ToUtf16(text)) kinds.push_back(ClassOf(unit));
  std::string runs;
  for (size_t i = 0; i < kinds.size();) {
    size_t end = i;
    while (end < kinds.size() && kinds[end] == kinds[i]) ++end;
    runs += kinds[i] + std::to_string(end - i);
    i = end;
  }
  return runs;
}

// A plus for each digit: longer runs keep a longer mark, as in SystemDS.
std::string WithoutLengths(std::string pattern) {
  for (char& sign : pattern)
    if (sign >= '0' && sign <= '9') sign = '+';
  return pattern;
}

std::string OneKindOfLetters(std::string_view pattern) {
  std::string result;
  bool in_letters = false;
  for (const char sign : pattern) {
    if (sign == 'u' || sign == 'l') {
      if (!in_letters) result.push_back('a');
      in_letters = true;
    } else if (sign == '+') {
      if (result.empty() || result.back() != '+') result.push_back(sign);
    } else {
      result.push_back(sign);
      in_letters = false;
    }
  }
  return result;
}

// What of `inner` stands between runs of `outer` goes, and the runs become one.
std::string WithoutInner(std::string_view pattern, char outer, char inner) {
  std::string result;
  bool inside = false;
  for (const char sign : pattern) {
    if (sign == outer && !inside) {
      inside = true;
      result.push_back(sign);
    } else if (inside && (sign == outer || sign == inner)) {
      continue;
    } else if (sign != inner && sign != '+') {
      inside = false;
      result.push_back(sign);
    } else if (!result.empty() && result.back() != '+') {
      result.push_back(sign);
    }
  }
  return result;
}

std::string WithoutSigns(std::string_view pattern) {
  std::string result;
  bool behind_minus = false;
  for (const char sign : pattern) {
    if (sign == '-' && !behind_minus) {
      behind_minus = true;
      continue;
    }
    if (behind_minus && sign != 'd') result.push_back('-');
    behind_minus = false;
    result.push_back(sign);
  }
  return result;
}

}  // namespace

std::string PatternOf(std::string_view text, int level) {
  std::string pattern = Runs(text);
  if (level >= 2) pattern = WithoutLengths(std::move(pattern));
  if (level >= 3) pattern = OneKindOfLetters(pattern);
  if (level >= 4) pattern = WithoutInner(pattern, 'd', 't');
  if (level >= 5) pattern = WithoutInner(pattern, 'a', 's');
  if (level >= 6) pattern = WithoutSigns(pattern);
  return pattern;
}

Result<SyntacticPatterns> SyntacticPatterns::Parse(std::string_view text) {
  const size_t open = text.find('(');
  const size_t comma = open == text.npos ? text.npos : text.find(',', open);
  const size_t close = comma == text.npos ? text.npos : text.find(')', comma);
  const std::optional<double> threshold =
      close == text.npos ? std::nullopt : ParseDouble(text.substr(open + 1, comma - open - 1));
  if (!threshold)
    return InvalidArgument(
        "map: UtilFunctions.syntacticalPatternDiscovery needs a threshold and a text: (0.8, NA)");
  SyntacticPatterns patterns;
  patterns.threshold = *threshold;
  patterns.replacement = std::string(text.substr(comma + 1, close - comma - 1));
  return patterns;
}

Result<Frame> SyntacticPatterns::Apply(const Frame& frame) const {
  std::vector<Column> columns;
  for (int64_t j = 0; j < frame.columns(); ++j) {
    if (frame.column(j).type() != ColumnType::kString)
      return FailedPrecondition("map: syntacticalPatternDiscovery needs columns of strings, {} is of {}",
                                frame.schema()->NameOf(j), Name(frame.column(j).type()));
    std::vector<std::optional<std::string>> cells;
    for (int64_t i = 0; i < frame.rows(); ++i) cells.push_back(TextOfCell(frame, i, j));
    for (int level = 1; level <= kPatternLevels; ++level) {
      std::map<std::string, int64_t> counts;
      for (const auto& cell : cells) ++counts[PatternOf(cell.value_or("NULL"), level)];
      const auto most = std::max_element(counts.begin(), counts.end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
      const bool decides = most != counts.end() &&
                           static_cast<double>(most->second) / static_cast<double>(frame.rows()) > threshold;
      if (!decides) continue;
      for (auto& cell : cells)
        if (PatternOf(cell.value_or("NULL"), level) != most->first) cell = replacement;
      break;
    }
    HEDDLE_ASSIGN_OR_RETURN(Column column, TextColumn(cells));
    columns.push_back(std::move(column));
  }
  return Frame(frame.schema(), std::move(columns));
}

}  // namespace heddle::ops
