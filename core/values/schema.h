// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/values/data_type.h"

namespace heddle {

/// Type of a column of a frame as the language names it. Integers of 32 bits are stored as those of 64,
/// floats as doubles and characters as strings: these types differ in what they may hold and in their text.
enum class ColumnType : uint8_t {
  kString,
  kFloat64,
  kFloat32,
  kInteger64,
  kInteger32,
  kBoolean,
  kCharacter,
};
constexpr int kColumnTypes = 7;

/// What a column's cells are in memory: one array of numbers, or offsets and bytes.
enum class ColumnStorage : uint8_t { kDoubles, kIntegers, kBooleans, kTexts };

std::string_view Name(
    ColumnType type);  ///< "STRING", "FP64", "FP32", "INT64", "INT32", "BOOLEAN", "CHARACTER"
std::optional<ColumnType> ParseColumnType(std::string_view name);  ///< Name, exactly.
ColumnStorage StorageOf(ColumnType type);
/// Type of the scalar that a cell becomes.
ValueType ValueTypeOf(ColumnType type);

/// Types and names of the columns of a frame.
struct Schema {
  std::vector<ColumnType> types;
  std::vector<std::string> names;  ///< One a column, or empty: the columns are unnamed, C1 to Cn.

  int64_t columns() const { return static_cast<int64_t>(types.size()); }
  /// Of column `column`, from 0; "C1" of the first unnamed one.
  std::string NameOf(int64_t column) const;
  bool operator==(const Schema&) const = default;

  /// "STRING, FP64", or "STRING name, FP64 age" with names (AppendName).
  std::string ToText() const;
};

/// Bytes of `rows` rows but for the texts of strings, and for the marks of missing cells; INT64_MAX when
/// there are more.
int64_t FixedBytes(const Schema& schema, int64_t rows);

}  // namespace heddle
