// SPDX-License-Identifier: Apache-2.0
#include "ops/frame/convert.h"

#include <algorithm>
#include <array>
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
    const std::optional<double> number = is_missing ? 0 : NumberAt(column, i);
    if (!number) return NoCell(column, i, type);
    switch (result.storage()) {
      case ColumnStorage::kDoubles:
        result.mutable_doubles()[i] =
            type == ColumnType::kFloat32 ? static_cast<double>(static_cast<float>(*number)) : *number;
        break;
      case ColumnStorage::kIntegers: {
        const double limit = type == ColumnType::kInteger32 ? 0x1p31 : 0x1p63;
        const bool is_integer = column.storage() == ColumnStorage::kIntegers && !is_missing;
        // Integers beyond 2^53 are not told by a double; the largest is 2^63 as a double.
        const bool fits = std::trunc(*number) >= -limit && *number < limit;
        if (!fits && !(is_integer && type == ColumnType::kInteger64)) return NoCell(column, i, type);
        result.mutable_integers()[i] = is_integer ? column.integers()[i] : static_cast<int64_t>(*number);
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
  return ParseDouble(text);
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
