// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/module/arrow/columns.h"

#include <arrow/extension_type.h>
#include <arrow/type_traits.h>
#include <arrow/util/key_value_metadata.h>

#include <set>

#include "ops/io/formats/json_line.h"

namespace heddle::ops::tables {
namespace {

ColumnType TypeOf(const arrow::DataType& type) {
  // A decimal of so many digits is an INT64, if it has no fraction.
  constexpr int32_t kDigitsOfInteger64 = 18;
  if (arrow::is_decimal(type.id())) {
    const auto& decimal = static_cast<const arrow::DecimalType&>(type);
    return decimal.scale() == 0 && decimal.precision() <= kDigitsOfInteger64 ? ColumnType::kInteger64
                                                                             : ColumnType::kFloat64;
  }
  switch (type.id()) {
    case arrow::Type::BOOL: return ColumnType::kBoolean;
    case arrow::Type::INT8:
    case arrow::Type::INT16:
    case arrow::Type::INT32:
    case arrow::Type::UINT8:
    case arrow::Type::UINT16: return ColumnType::kInteger32;
    case arrow::Type::UINT32:
    case arrow::Type::UINT64:
    case arrow::Type::INT64: return ColumnType::kInteger64;
    case arrow::Type::HALF_FLOAT:
    case arrow::Type::FLOAT: return ColumnType::kFloat32;
    case arrow::Type::DOUBLE:
    case arrow::Type::NA: return ColumnType::kFloat64;
    case arrow::Type::DICTIONARY:
      return TypeOf(*static_cast<const arrow::DictionaryType&>(type).value_type());
    case arrow::Type::RUN_END_ENCODED:
      return TypeOf(*static_cast<const arrow::RunEndEncodedType&>(type).value_type());
    case arrow::Type::EXTENSION: {
      const auto& extension = static_cast<const arrow::ExtensionType&>(type);
      return extension.extension_name() == "arrow.bool8" ? ColumnType::kBoolean
                                                         : TypeOf(*extension.storage_type());
    }
    default: return ColumnType::kString;  // Whatever else there is has a text.
  }
}

ColumnType TypeOf(const arrow::Field& field) {
  if (field.metadata() != nullptr)
    if (const auto said = field.metadata()->Get(kTypeKey); said.ok() && *said == "CHARACTER")
      return ColumnType::kCharacter;
  return TypeOf(*field.type());
}

// The columns that hold the index of a frame of pandas, which notes them in JSON: "index_columns" has names,
// and objects for indexes that are no columns.
std::set<std::string, std::less<>> IndexOfPandas(const arrow::Schema& schema) {
  std::set<std::string, std::less<>> names;
  if (schema.metadata() == nullptr) return names;
  const auto note = schema.metadata()->Get("pandas");
  if (!note.ok()) return names;
  JsonLine line(*note);
  std::string_view key;
  JsonValue value;
  if (line.Begin() != '{') return names;
  while (line.Next(&key, &value)) {
    if (key != "index_columns") continue;
    JsonLine columns(value.text);
    JsonValue column;
    if (columns.Begin() != '[') return names;
    while (columns.Next(&key, &column))
      if (column.is_text) names.emplace(column.text);
    return names;
  }
  return names;
}

}  // namespace

TableColumns ColumnsOf(const arrow::Schema& schema) {
  TableColumns columns;
  std::set<std::string, std::less<>> index = IndexOfPandas(schema);
  // A table that is nothing but an index is read as it is.
  if (index.size() >= static_cast<size_t>(schema.num_fields())) index.clear();
  for (int j = 0; j < schema.num_fields(); ++j) {
    const arrow::Field& field = *schema.field(j);
    if (index.contains(field.name())) {
      columns.left_out.push_back(field.name());
      continue;
    }
    columns.schema.types.push_back(TypeOf(field));
    columns.schema.names.push_back(field.name());
    columns.types.push_back(field.type()->ToString());
    columns.fields.push_back(j);
    columns.bytes_are.push_back(BytesAre::kText);
  }
  return columns;
}

}  // namespace heddle::ops::tables
