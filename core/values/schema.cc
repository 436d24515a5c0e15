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

namespace {

// Columns of one type in a row, whose names are all counted (C1 of the first column) or are not there.
struct Run {
  size_t begin, end;
  bool is_counted;
};

Run RunAt(const Schema& schema, size_t begin) {
  const auto is_counted = [&](size_t i) {
    return !schema.names.empty() && schema.names[i] == fmt::format("C{}", i + 1);
  };
  Run run = {begin, begin + 1, is_counted(begin)};
  if (!schema.names.empty() && !run.is_counted) return run;
  while (run.end < schema.types.size() && schema.types[run.end] == schema.types[begin] &&
         (!run.is_counted || is_counted(run.end)))
    ++run.end;
  return run;
}

}  // namespace

std::string Schema::ToText() const {
  constexpr size_t kLeastRun = 16;  // Shorter ones are told column by column.
  std::string text;
  for (size_t i = 0; i < types.size();) {
    Run run = RunAt(*this, i);
    const bool is_long = run.end - i >= kLeastRun;
    if (!is_long) run.end = i + 1;
    if (i > 0) text.append(", ");
    text.append(Name(types[i]));
    if (is_long) text.append(fmt::format("*{}", run.end - i));
    if (!names.empty()) {
      text.push_back(' ');
      if (is_long)
        text.append("C*");
      else
        AppendName(names[i], &text);
    }
    i = run.end;
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
