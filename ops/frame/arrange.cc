// SPDX-License-Identifier: Apache-2.0
#include "ops/frame/arrange.h"

#include <set>

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

}  // namespace

std::vector<std::string> CountedNames(int64_t columns) {
  std::vector<std::string> names;
  for (int64_t j = 1; j <= columns; ++j) names.push_back(fmt::format("C{}", j));
  return names;
}

std::shared_ptr<const Schema> OfChangedCopy(const std::shared_ptr<const Schema>& schema) {
  if (schema == nullptr || schema->names.empty() || schema->names != CountedNames(schema->columns()))
    return schema;
  return std::make_shared<const Schema>(Schema{schema->types, {}});
}

Schema ColumnsOf(const Schema& schema, int64_t begin, int64_t end) {
  Schema part;
  part.types.assign(schema.types.begin() + begin, schema.types.begin() + end);
  if (!schema.names.empty()) part.names.assign(schema.names.begin() + begin, schema.names.begin() + end);
  return part;
}

Frame ColumnsOf(const Frame& frame, int64_t begin, int64_t end) {
  std::vector<Column> columns;
  for (int64_t j = begin; j < end; ++j) columns.push_back(frame.column(j));
  return Frame(std::make_shared<const Schema>(ColumnsOf(*frame.schema(), begin, end)), std::move(columns));
}

Schema SideBySide(std::span<const Schema* const> schemas) {
  Schema result;
  std::set<std::string> names;
  for (const Schema* schema : schemas) {
    result.types.insert(result.types.end(), schema->types.begin(), schema->types.end());
    bool differ = true;
    for (int64_t j = 0; j < schema->columns(); ++j) {
      result.names.push_back(schema->NameOf(j));
      differ &= names.insert(result.names.back()).second;
    }
    if (differ) continue;
    result.names = CountedNames(result.columns());
    names = std::set<std::string>(result.names.begin(), result.names.end());
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
  if (result.names == CountedNames(result.columns())) result.names.clear();
  for (const Schema* schema : schemas)
    for (size_t j = 0; j < result.types.size(); ++j)
      result.types[j] = WiderOf(result.types[j], schema->types[j]);
  return result;
}

Result<Frame> BelowEachOther(std::span<const Frame> frames) {
  const auto schema = std::make_shared<const Schema>(BelowEachOther(SchemasOf(frames)));
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

Result<Frame> Replaced(const Frame& frame, int64_t row, int64_t column, const Frame& part) {
  std::vector<Column> columns;
  for (int64_t j = 0; j < frame.columns(); ++j) columns.push_back(frame.column(j));
  for (int64_t j = 0; j < part.columns(); ++j) {
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
