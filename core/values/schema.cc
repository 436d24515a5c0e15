// SPDX-License-Identifier: Apache-2.0
#include "core/values/schema.h"

#include <array>

#include "core/status.h"
#include "core/text/quoted.h"
#include "core/values/sizes.h"

namespace heddle {
namespace {

constexpr std::array<std::string_view, kColumnTypes> kNames = {"STRING", "FP64",    "FP32",     "INT64",
                                                               "INT32",  "BOOLEAN", "CHARACTER"};

}  // namespace

std::string_view Name(ColumnType type) { return kNames[static_cast<size_t>(type)]; }

std::optional<ColumnType> ParseColumnType(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<ColumnType>(i);
  return std::nullopt;
}

ColumnStorage StorageOf(ColumnType type) {
  switch (type) {
    case ColumnType::kFloat64:
    case ColumnType::kFloat32: return ColumnStorage::kDoubles;
    case ColumnType::kInteger64:
    case ColumnType::kInteger32: return ColumnStorage::kIntegers;
    case ColumnType::kBoolean: return ColumnStorage::kBooleans;
    case ColumnType::kString:
    case ColumnType::kCharacter: return ColumnStorage::kTexts;
  }
  HEDDLE_CHECK(false, "every type of column has a storage");
}

ValueType ValueTypeOf(ColumnType type) {
  switch (StorageOf(type)) {
    case ColumnStorage::kDoubles: return ValueType::kDouble;
    case ColumnStorage::kIntegers: return ValueType::kInteger;
    case ColumnStorage::kBooleans: return ValueType::kBoolean;
    case ColumnStorage::kTexts: return ValueType::kString;
  }
  HEDDLE_CHECK(false, "every storage has a type of scalars");
}

std::string Schema::NameOf(int64_t column) const {
  return names.empty() ? fmt::format("C{}", column + 1) : names[static_cast<size_t>(column)];
}

std::string Schema::ToText() const {
  std::string text;
  for (size_t i = 0; i < types.size(); ++i) {
    if (i > 0) text.append(", ");
    text.append(Name(types[i]));
    if (names.empty()) continue;
    text.push_back(' ');
    AppendName(names[i], &text);
  }
  return text;
}

int64_t FixedBytes(const Schema& schema, int64_t rows) {
  int64_t bytes = 0;
  for (const ColumnType type : schema.types) {
    switch (StorageOf(type)) {
      case ColumnStorage::kDoubles:
      case ColumnStorage::kIntegers: bytes = SaturatingSum(bytes, SaturatingProduct(rows, 8)); break;
      case ColumnStorage::kBooleans: bytes = SaturatingSum(bytes, rows); break;
      case ColumnStorage::kTexts:
        bytes = SaturatingSum(bytes, SaturatingProduct(SaturatingSum(rows, 1), 8));
        break;
    }
  }
  return bytes;
}

}  // namespace heddle
