// SPDX-License-Identifier: Apache-2.0
#include "ops/exchange/column_facts.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/text/utf8.h"
#include "ops/formats/fields.h"
#include "ops/formats/frame_cells.h"
#include "ops/formats/lines.h"

namespace heddle::ops {
namespace {

constexpr size_t kMostExample = 40;  // bytes of a cell that is shown

bool IsDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// 2024-01-31, 2024/1/31, 31.01.2024, 1/31/24, with or without a time behind it.
bool IsDate(std::string_view text) {
  text = text.substr(0, text.find_first_of(" T"));
  for (const char mark : {'-', '/', '.'}) {
    const size_t first = text.find(mark);
    const size_t second = first == std::string_view::npos ? first : text.find(mark, first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view parts[] = {text.substr(0, first), text.substr(first + 1, second - first - 1),
                                      text.substr(second + 1)};
    return std::all_of(std::begin(parts), std::end(parts),
                       [](std::string_view part) { return IsDigits(part) && part.size() <= 4; }) &&
           parts[1].size() <= 2;
  }
  return false;
}

// Digits with at most a sign before them.
bool IsWhole(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return IsDigits(text);
}

// Beyond 2^53 a double is not every whole number: what became of it is compared digit by digit.
bool LosesDigits(std::string_view whole, double number) {
  if (std::abs(number) < 0x1p53) return false;
  whole.remove_prefix(std::min(whole.find_first_not_of("+-0"), whole.size()));
  return fmt::format("{:.0f}", std::abs(number)) != whole;
}

std::string Example(std::string_view text) { return EscapeForTerminal(CutAtCharacter(text, kMostExample)); }

}  // namespace

void ColumnFacts::AddNumber(double number) {
  if (std::isnan(number)) {
    ++nan;
    return;
  }
  infinite += std::isinf(number);
  zeros += number == 0;
  least = std::min(least, number);
  greatest = std::max(greatest, number);
}

void ColumnFacts::Add(const Field& field, int64_t row) {
  if (field.text.empty()) {
    ++missing;
    return;
  }
  if (const std::optional<double> number = ParseNumber(field.text)) {
    const bool is_whole = IsWhole(field.text);
    ++(is_whole ? integers : fractions);
    quoted_numbers += field.quoted;
    if (is_whole && LosesDigits(field.text, *number) && inexact++ == 0) first_inexact = Example(field.text);
    if (row_of_number == 0) {
      row_of_number = row;
      first_number = Example(field.text);
    }
    return AddNumber(*number);
  }
  const std::string_view boolean = field.text;
  const bool is_boolean = boolean == "TRUE" || boolean == "FALSE" || boolean == "true" ||
                          boolean == "false" || boolean == "True" || boolean == "False";
  ++(is_boolean ? booleans : IsDate(field.text) ? dates : texts);
  if (row_of_text != 0) return;
  row_of_text = row;
  first_text = Example(field.text);
}

std::string_view ColumnFacts::kind() const {
  const int64_t words = booleans + dates + texts;
  if (numbers() == 0 && words == 0) return "empty";
  if (numbers() > 0 && words > 0) return "mixed";
  if (words > 0) return booleans == words ? "boolean" : dates == words ? "date" : "text";
  return fractions == 0 ? "int" : "double";
}

std::string_view ColumnFacts::schema_type() const {
  const std::string_view is = kind();
  if (is == "int") return nan == 0 ? "INT64" : "FP64";
  if (is == "double" || is == "empty") return "FP64";
  return is == "boolean" ? "BOOLEAN" : "STRING";
}

bool FieldReader::Next(Field* field) {
  if (!more_) return false;
  if (any_blanks_) rest_ = Trim(rest_);
  size_t begin = 0;
  while (begin < rest_.size() && IsBlank(rest_[begin]) && !rest_.substr(begin).starts_with(separator_))
    ++begin;
  size_t search = 0;
  if (begin < rest_.size() && rest_[begin] == '"') {
    size_t quote = rest_.find('"', begin + 1);
    while (quote != std::string_view::npos && rest_.substr(quote + 1).starts_with('"'))
      quote = rest_.find('"', quote + 2);
    if (quote != std::string_view::npos) {
      met_separator_in_quotes_ |=
          rest_.substr(begin, quote - begin).find(separator_) != std::string_view::npos;
      search = quote + 1;
    }
  }
  const size_t end = any_blanks_ ? rest_.find_first_of(" \t", search) : rest_.find(separator_, search);
  std::string_view text = Trim(rest_.substr(0, end));
  field->quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  if (field->quoted) text = Trim(text.substr(1, text.size() - 2));
  field->text = text;
  more_ = end != std::string_view::npos;
  if (more_) rest_.remove_prefix(end + (any_blanks_ ? 1 : separator_.size()));
  if (any_blanks_ && Trim(rest_).empty()) more_ = false;
  return true;
}

}  // namespace heddle::ops
