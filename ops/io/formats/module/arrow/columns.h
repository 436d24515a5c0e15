// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arrow/type.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/values/schema.h"

namespace heddle::ops::tables {

/// The note at a column whose type Arrow has not.
constexpr char kTypeKey[] = "heddle.type";

/// What the bytes of a column of texts are, where Arrow does not say it.
enum class BytesAre : uint8_t { kText, kUuid, kInterval };

/// The columns of a file that are read.
struct TableColumns {
  Schema schema;
  std::vector<std::string> types;   ///< As Arrow calls them: "decimal128(5, 1)".
  std::vector<int> fields;          ///< Which one of the file each is, from 0.
  std::vector<BytesAre> bytes_are;  ///< All kText.
  std::vector<std::string>
      left_out;  ///< The names of those that are not read: the index of a frame of pandas.
};

/// Booleans, integers, floats and decimals are numbers; so are dictionaries and runs of them. A column of
/// nothing is one of doubles. All else has texts.
TableColumns ColumnsOf(const arrow::Schema& schema);

}  // namespace heddle::ops::tables
