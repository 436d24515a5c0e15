// SPDX-License-Identifier: Apache-2.0
#include "ops/io/exchange/column_facts.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "core/text/utf8.h"
#include "ops/io/formats/fields.h"
#include "ops/io/formats/frame_cells.h"
#include "ops/io/formats/lines.h"

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

constexpr double kBeyondIntegers = 0x1p63;

// Whether no INT64 is a whole number. Its largest is no double, so that the next double does not tell.
bool IsTooLarge(std::string_view whole, double number) {
  if (std::abs(number) < kBeyondIntegers) return false;
  if (whole.starts_with('+')) whole.remove_prefix(1);
  int64_t integer = 0;
  return std::from_chars(whole.data(), whole.data() + whole.size(), integer).ec != std::errc();
}

// What became of a whole number that a double may not hold is compared digit by digit.
bool LosesDigits(std::string_view whole, double number) {
  if (std::abs(number) < kExactIntegers) return false;
  whole.remove_prefix(std::min(whole.find_first_not_of("+-0"), whole.size()));
  return fmt::format("{:.0f}", std::abs(number)) != whole;
}

// 01234, -007, 00.5: numbers that are also names of things, such as postal codes.
bool HasZerosInFront(std::string_view number) {
  if (number.starts_with('-') || number.starts_with('+')) number.remove_prefix(1);
  return number.size() > 1 && number[0] == '0' && number[1] >= '0' && number[1] <= '9';
}

std::string Example(std::string_view text) { return EscapeForTerminal(CutAtCharacter(text, kMostExample)); }

}  // namespace

bool IsExactInteger(double number) { return number == std::trunc(number) && std::abs(number) <= 0x1p53; }

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

void ColumnLook::Cells::Add(std::string_view text, int64_t row) {
  const std::string_view word = Trim(text);
  if (text.empty()) {
    ++missing;
    return;
  }
  if (const std::optional<double> number = ParseNumber(word)) {
    const bool is_whole = IsWhole(word);
    ++(is_whole ? integers : fractions);
    if (is_whole && LosesDigits(word, *number) && inexact++ == 0) first_inexact = Example(word);
    if (is_whole && IsTooLarge(word, *number)) ++too_large;
    if (HasZerosInFront(word) && zeros_in_front++ == 0) first_zeros_in_front = Example(word);
    if (row_of_number == 0) {
      row_of_number = row;
      first_number = Example(word);
    }
    return AddNumber(*number);
  }
  ++(IsBooleanWord(word) ? booleans : IsDate(word) ? dates : texts);
  if (row_of_text != 0) return;
  row_of_text = row;
  first_text = Example(text);
}

ColumnFacts ColumnLook::Facts(Quotes quotes) const {
  ColumnFacts facts = plain_;
  const auto keep_first = [](int64_t other_row, const std::string& other, int64_t* row, std::string* text) {
    if (other_row == 0 || (*row != 0 && *row < other_row)) return;
    *row = other_row;
    *text = other;
  };
  // Other programs write numbers that are not finite as texts, too: beside numbers they are such.
  const bool all_nonfinite = quoted_.numbers() == quoted_.nan + quoted_.infinite;
  const bool are_numbers = quotes == Quotes::kNothing ||
                           (plain_.numbers() > 0 && (quotes == Quotes::kTextsOfColumn || all_nonfinite));
  const bool are_booleans =
      quotes == Quotes::kNothing || (quotes == Quotes::kTextsOfColumn && plain_.booleans > 0);
  facts.texts += quoted_.texts;
  facts.dates += quoted_.dates;
  (are_booleans ? facts.booleans : facts.texts) += quoted_.booleans;
  keep_first(quoted_.row_of_text, quoted_.first_text, &facts.row_of_text, &facts.first_text);
  if (are_numbers) {
    facts.quoted_numbers = quoted_.numbers();
    facts.integers += quoted_.integers;
    facts.fractions += quoted_.fractions;
    facts.nan += quoted_.nan;
    facts.infinite += quoted_.infinite;
    facts.zeros += quoted_.zeros;
    facts.least = std::min(facts.least, quoted_.least);
    facts.greatest = std::max(facts.greatest, quoted_.greatest);
    if (facts.inexact == 0) facts.first_inexact = quoted_.first_inexact;
    facts.inexact += quoted_.inexact;
    facts.too_large += quoted_.too_large;
    if (facts.zeros_in_front == 0) facts.first_zeros_in_front = quoted_.first_zeros_in_front;
    facts.zeros_in_front += quoted_.zeros_in_front;
    keep_first(quoted_.row_of_number, quoted_.first_number, &facts.row_of_number, &facts.first_number);
  } else {
    facts.texts += quoted_.numbers();
    keep_first(quoted_.row_of_number, quoted_.first_number, &facts.row_of_text, &facts.first_text);
  }
  // An empty text is what other programs have for a missing number; beside texts, or alone, it is one.
  const bool are_texts =
      quotes == Quotes::kText || (quotes == Quotes::kTextsOfColumn && facts.numbers() == 0);
  (are_texts || facts.HasTexts() ? facts.texts : facts.missing) += quoted_.missing;
  return facts;
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
  if (is == "int") return nan == 0 && too_large == 0 ? "INT64" : "FP64";
  if (is == "double" || is == "empty") return "FP64";
  return is == "boolean" ? "BOOLEAN" : "STRING";
}

}  // namespace heddle::ops
