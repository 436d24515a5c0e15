// SPDX-License-Identifier: Apache-2.0
#include "ops/frame/convert.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/text/double_text.h"
#include "core/text/utf8.h"

namespace heddle::ops {
namespace {

constexpr std::array kByWidth = {ColumnType::kBoolean, ColumnType::kInteger32, ColumnType::kInteger64,
                                 ColumnType::kFloat32, ColumnType::kFloat64,   ColumnType::kCharacter,
                                 ColumnType::kString};

bool EqualsIgnoringCase(std::string_view text, std::string_view upper) {
  return std::equal(text.begin(), text.end(), upper.begin(), upper.end(),
                    [](char a, char b) { return (a >= 'a' && a <= 'z' ? a - 'a' + 'A' : a) == b; });
}

// What stands for booleans beside the words that are numbers, too.
std::optional<double> BooleanInText(std::string_view text) {
  if (EqualsIgnoringCase(text, "T")) return 1;
  if (EqualsIgnoringCase(text, "F")) return 0;
  return std::nullopt;
}

// nullopt where a text is no number.
std::optional<double> NumberAt(const Column& column, int64_t row) {
  switch (column.storage()) {
    case ColumnStorage::kDoubles: return column.doubles()[row];
    case ColumnStorage::kIntegers: return static_cast<double>(column.integers()[row]);
    case ColumnStorage::kBooleans: return column.booleans()[row];
    case ColumnStorage::kTexts: return NumberInText(column.TextAt(row));
  }
  HEDDLE_CHECK(false, "cells of every storage are numbers or texts");
}

Status NoCell(const Column& column, int64_t row, ColumnType type) {
  std::string text;
  AppendCell(column, row, &text);
  return FailedPrecondition("'{}' is no {}", ShownInLine(text, 40), Name(type));
}

Result<Column> ToTexts(const Column& column, ColumnType type) {
  std::string texts;
  std::vector<int64_t> offsets = {0};
  for (int64_t i = 0; i < column.rows(); ++i) {
    const size_t begin = texts.size();
    if (!column.IsMissing(i)) AppendCell(column, i, &texts);
    if (type == ColumnType::kCharacter && begin < texts.size() &&
        Utf8Length(texts, begin) != texts.size() - begin)
      return NoCell(column, i, type);
    offsets.push_back(static_cast<int64_t>(texts.size()));
  }
  HEDDLE_ASSIGN_OR_RETURN(
      Column result, Column::Make(type, column.rows(), static_cast<int64_t>(texts.size()), column.MayMiss()));
  std::copy(offsets.begin(), offsets.end(), result.mutable_offsets());
  std::copy(texts.begin(), texts.end(), result.mutable_texts());
  if (column.MayMiss()) std::copy_n(column.missing(), column.rows(), result.mutable_missing());
  return result;
}

Result<Column> ToNumbers(const Column& column, ColumnType type, bool may_miss) {
  const bool has_texts = column.storage() == ColumnStorage::kTexts;
  HEDDLE_ASSIGN_OR_RETURN(Column result,
                          Column::Make(type, column.rows(), 0, has_texts ? may_miss : column.MayMiss()));
  for (int64_t i = 0; i < column.rows(); ++i) {
    const bool is_missing = column.IsMissing(i) || (has_texts && column.TextAt(i).empty());
    if (is_missing && result.MayMiss()) result.mutable_missing()[i] = 1;
    std::optional<double> number = is_missing ? 0 : NumberAt(column, i);
    if (!number && type == ColumnType::kBoolean && has_texts) number = BooleanInText(column.TextAt(i));
    if (!number) return NoCell(column, i, type);
    // Integers beyond 2^53 are not told by a double; the largest is 2^63 as a double.
    std::optional<int64_t> integer;
    if (column.storage() == ColumnStorage::kIntegers && !is_missing) integer = column.integers()[i];
    if (has_texts && !is_missing) integer = IntegerInText(column.TextAt(i));
    switch (result.storage()) {
      case ColumnStorage::kDoubles:
        result.mutable_doubles()[i] =
            type == ColumnType::kFloat32 ? static_cast<double>(static_cast<float>(*number)) : *number;
        break;
      case ColumnStorage::kIntegers: {
        const double limit = type == ColumnType::kInteger32 ? 0x1p31 : 0x1p63;
        const bool fits = std::trunc(*number) >= -limit && *number < limit;
        if (!fits && !(integer && type == ColumnType::kInteger64)) return NoCell(column, i, type);
        result.mutable_integers()[i] = integer ? *integer : static_cast<int64_t>(*number);
        break;
      }
      case ColumnStorage::kBooleans:
        if (*number != 0 && *number != 1) return NoCell(column, i, type);
        result.mutable_booleans()[i] = *number == 1;
        break;
      case ColumnStorage::kTexts: HEDDLE_CHECK(false, "numbers are no texts");
    }
  }
  return result;
}

}  // namespace

void AppendCell(const Column& column, int64_t row, std::string* out) {
  switch (column.storage()) {
    case ColumnStorage::kDoubles:
      if (column.type() == ColumnType::kFloat32)
        AppendSingle(static_cast<float>(column.doubles()[row]), out);
      else
        AppendDouble(column.doubles()[row], out);
      return;
    case ColumnStorage::kIntegers: out->append(std::to_string(column.integers()[row])); return;
    case ColumnStorage::kBooleans: out->append(column.booleans()[row] != 0 ? "true" : "false"); return;
    case ColumnStorage::kTexts: out->append(column.TextAt(row)); return;
  }
}

std::optional<double> NumberInText(std::string_view text) {
  if (text.empty()) return std::numeric_limits<double>::quiet_NaN();
  if (EqualsIgnoringCase(text, "TRUE")) return 1;
  if (EqualsIgnoringCase(text, "FALSE")) return 0;
  if (const std::optional<double> number = ParseDouble(text)) return number;
  const double sign = text.front() == '-' ? -1 : 1;
  if (text.front() == '-' || text.front() == '+') text.remove_prefix(1);
  if (EqualsIgnoringCase(text, "INF") || EqualsIgnoringCase(text, "INFINITY"))
    return sign * std::numeric_limits<double>::infinity();
  if (EqualsIgnoringCase(text, "NAN")) return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

std::optional<int64_t> IntegerInText(std::string_view text) {
  const std::string_view digits = text.substr(0, text.find('.'));
  const std::string_view rest = text.substr(digits.size());
  if (!rest.empty() && rest.find_first_not_of('0', 1) != rest.npos) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

bool IsSingle(double x) {
  if (!std::isfinite(x)) return true;
  const auto single = static_cast<float>(x);
  if (static_cast<double>(single) != x) return false;
  std::string text;
  AppendSingle(single, &text);
  return ParseDouble(text) == x;
}

ColumnType WiderOf(ColumnType a, ColumnType b) {
  const auto width = [](ColumnType type) { return std::find(kByWidth.begin(), kByWidth.end(), type); };
  return *std::max(width(a), width(b));
}

Result<Column> Converted(const Column& column, ColumnType type, bool may_miss) {
  if (column.type() == type) return column;
  return StorageOf(type) == ColumnStorage::kTexts ? ToTexts(column, type) : ToNumbers(column, type, may_miss);
}

}  // namespace heddle::ops
