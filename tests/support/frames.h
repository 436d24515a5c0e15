// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/values/frame.h"

// Frames to test with.
namespace heddle {

/// `rows` rows of a column of every type, some cells missing where `may_miss`: a function of the number of
/// the row alone, so that rows [begin, end) of a large frame equal NumberedFrame(end - begin, begin).
inline Frame NumberedFrame(int64_t rows, int64_t first = 0, bool may_miss = true) {
  Schema schema;
  std::vector<Column> columns;
  for (int i = 0; i < kColumnTypes; ++i) {
    const auto type = static_cast<ColumnType>(i);
    std::string texts;
    std::vector<int64_t> offsets = {0};
    for (int64_t row = first; row < first + rows; ++row) {
      const std::string text = type == ColumnType::kCharacter ? "é" : std::string(row % 5, 'a' + row % 26);
      if (StorageOf(type) == ColumnStorage::kTexts && !(may_miss && row % 7 == i)) texts += text;
      offsets.push_back(static_cast<int64_t>(texts.size()));
    }
    Column column = *Column::Make(type, rows, static_cast<int64_t>(texts.size()), may_miss);
    for (int64_t k = 0; k < rows; ++k) {
      const int64_t row = first + k;
      const bool missing = may_miss && row % 7 == i;
      if (may_miss) column.mutable_missing()[k] = missing;
      switch (column.storage()) {
        case ColumnStorage::kDoubles: column.mutable_doubles()[k] = missing ? 0 : row * 0.5; break;
        case ColumnStorage::kIntegers: column.mutable_integers()[k] = missing ? 0 : row * 3 - 10; break;
        case ColumnStorage::kBooleans: column.mutable_booleans()[k] = !missing && row % 3 == 0; break;
        case ColumnStorage::kTexts: break;
      }
    }
    if (column.storage() == ColumnStorage::kTexts) {
      std::copy(offsets.begin(), offsets.end(), column.mutable_offsets());
      std::copy(texts.begin(), texts.end(), column.mutable_texts());
    }
    schema.types.push_back(type);
    schema.names.push_back("column " + std::to_string(i));
    columns.push_back(std::move(column));
  }
  return Frame(std::make_shared<const Schema>(std::move(schema)), std::move(columns));
}

}  // namespace heddle
