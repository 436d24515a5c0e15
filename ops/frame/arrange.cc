// SPDX-License-Identifier: Apache-2.0
#include "ops/frame/arrange.h"

#include <charconv>
#include <string_view>
#include <unordered_set>

#include "ops/frame/convert.h"
#include "ops/frame/stack_rows.h"

namespace heddle::ops {
namespace {

std::vector<const Schema*> SchemasOf(std::span<const Frame> frames) {
  std::vector<const Schema*> schemas;
  for (const Frame& frame : frames) schemas.push_back(frame.schema().get());
  return schemas;
}

// The frame as one column.
Frame OneColumn(Column column) {
  auto schema = std::make_shared<const Schema>(Schema{{column.type()}, {}});
  return Frame(std::move(schema), {std::move(column)});
}

// The number in a name like those of CountedNames(): 12 of "C12"; 0 of all other names.
int64_t NumberOfCounted(std::string_view name) {
  int64_t number = 0;
  if (name.size() < 2 || name[0] != 'C' || name[1] == '0') return 0;
  const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() && number > 0 ? number : 0;
}

}  // namespace

std::vector<std::string> CountedNames(int64_t columns) {
  std::vector<std::string> names;
  names.reserve(static_cast<size_t>(columns));
  for (int64_t j = 1; j <= columns; ++j) names.push_back(fmt::format("C{}", j));
  return names;
}

bool AreCounted(const std::vector<std::string>& names) {
  for (size_t j = 0; j < names.size(); ++j)
    if (NumberOfCounted(names[j]) != static_cast<int64_t>(j) + 1) return false;
  return true;
}

std::shared_ptr<const Schema> OfChangedCopy(const std::shared_ptr<const Schema>& schema) {
  if (schema == nullptr || schema->names.empty() || !AreCounted(schema->names)) return schema;
  return std::make_shared<const Schema>(Schema{schema->types, {}});
}

Schema SideBySide(std::span<const Schema* const> schemas) {
  int64_t columns = 0;
  for (const Schema* schema : schemas) columns += schema->columns();
  Schema result;
  result.types.reserve(static_cast<size_t>(columns));
  result.names.reserve(static_cast<size_t>(columns));  // Names stay where they are while `seen` knows them.
  // So many columns have the names C1, C2, ... from the first on; `seen` has the names of those behind them.
  int64_t counted = 0;
  std::unordered_set<std::string_view> seen;
  for (const Schema* schema : schemas) {
    const auto before = static_cast<int64_t>(result.types.size());
    result.types.insert(result.types.end(), schema->types.begin(), schema->types.end());
    if (before == 0 && (schema->names.empty() || AreCounted(schema->names))) {
      result.names = CountedNames(schema->columns());
      result.names.reserve(static_cast<size_t>(columns));
      counted = schema->columns();
      continue;
    }
    bool differ = true;
    for (int64_t j = 0; j < schema->columns() && differ; ++j) {
      std::string name = schema->NameOf(j);
      const int64_t number = NumberOfCounted(name);
      differ = (number == 0 || number > counted) && !seen.contains(name);
      result.names.push_back(std::move(name));
      if (differ) seen.insert(result.names.back());
    }
    if (differ) continue;
    seen.clear();
    counted = static_cast<int64_t>(result.types.size());
    result.names = CountedNames(counted);
    result.names.reserve(static_cast<size_t>(columns));
  }
  return result;
}

Frame SideBySide(std::span<const Frame> frames) {
  std::vector<Column> columns;
  for (const Frame& frame : frames)
    for (int64_t j = 0; j < frame.columns(); ++j) columns.push_back(frame.column(j));
  return Frame(std::make_shared<const Schema>(SideBySide(SchemasOf(frames))), std::move(columns));
}

Schema BelowEachOther(std::span<const Schema* const> schemas) {
  Schema result = *schemas[0];
  if (AreCounted(result.names)) result.names.clear();
  for (const Schema* schema : schemas)
    for (size_t j = 0; j < result.types.size(); ++j)
      result.types[j] = WiderOf(result.types[j], schema->types[j]);
  return result;
}

Result<Frame> BelowEachOther(std::span<const Frame> frames) {
  return BelowEachOther(frames, std::make_shared<const Schema>(BelowEachOther(SchemasOf(frames))));
}

Result<Frame> BelowEachOther(std::span<const Frame> frames, const std::shared_ptr<const Schema>& schema) {
  std::vector<Frame> pieces;
  for (const Frame& frame : frames) {
    std::vector<Column> columns;
    for (int64_t j = 0; j < frame.columns(); ++j) {
      HEDDLE_ASSIGN_OR_RETURN(Column column,
                              Converted(frame.column(j), schema->types[static_cast<size_t>(j)]));
      columns.push_back(std::move(column));
    }
    pieces.emplace_back(schema, std::move(columns));
  }
  return StackRows(pieces);
}

Result<Frame> Replaced(const Frame& frame, int64_t row, int64_t column, const Frame& part,
                       int64_t* column_of_failure) {
  std::vector<Column> columns;
  for (int64_t j = 0; j < frame.columns(); ++j) columns.push_back(frame.column(j));
  for (int64_t j = 0; j < part.columns(); ++j) {
    *column_of_failure = column + j;
    Column& old = columns[static_cast<size_t>(column + j)];
    HEDDLE_ASSIGN_OR_RETURN(Column cells, Converted(part.column(j), old.type(), old.MayMiss()));
    const std::vector<Frame> pieces = {OneColumn(old.Rows(0, row)), OneColumn(std::move(cells)),
                                       OneColumn(old.Rows(row + part.rows(), old.rows()))};
    HEDDLE_ASSIGN_OR_RETURN(const Frame replaced, StackRows(pieces));
    old = replaced.column(0);
  }
  return Frame(OfChangedCopy(frame.schema()), std::move(columns));
}

}  // namespace heddle::ops
