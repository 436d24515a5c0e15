// SPDX-License-Identifier: Apache-2.0
#include <span>
#include <string>
#include <vector>

#include "core/values/frame.h"
#include "ops/io/formats/arff/arff.h"
#include "ops/io/formats/arff/arff_values.h"
#include "ops/io/formats/write/row_pieces.h"

namespace heddle::ops {
namespace {

std::string_view TypeOf(ColumnType type) {
  switch (StorageOf(type)) {
    case ColumnStorage::kDoubles: return "numeric";
    case ColumnStorage::kIntegers: return "integer";
    case ColumnStorage::kBooleans: return "{false,true}";
    case ColumnStorage::kTexts: return "string";
  }
  HEDDLE_CHECK(false, "columns of every storage have a type");
}

}  // namespace

std::string ArffBeginning(const Schema& schema) {
  std::string text = "@relation heddle\n\n";
  for (int64_t j = 0; j < schema.columns(); ++j) {
    text += "@attribute ";
    AppendArffText(schema.NameOf(j), &text);
    text.append(" ").append(TypeOf(schema.types[static_cast<size_t>(j)])).push_back('\n');
  }
  return text + "\n@data\n";
}

namespace {

void AppendRow(const Frame& frame, std::span<const Column> columns, int64_t row, std::string* out) {
  for (size_t j = 0; j < columns.size(); ++j) {
    if (j > 0) out->push_back(',');
    if (columns[j].IsMissing(row)) {
      out->push_back('?');
      continue;
    }
    switch (columns[j].storage()) {
      case ColumnStorage::kTexts: AppendArffText(columns[j].TextAt(row), out); break;
      case ColumnStorage::kBooleans: out->append(columns[j].booleans()[row] != 0 ? "true" : "false"); break;
      case ColumnStorage::kDoubles:
      case ColumnStorage::kIntegers: frame.AppendText(row, static_cast<int64_t>(j), out); break;
    }
  }
  out->push_back('\n');
}

}  // namespace

Status WriteArff(const Frame& frame, const WriteOptions& options, const ByteSink& sink) {
  std::vector<Column> columns;
  for (int64_t j = 0; j < frame.columns(); ++j) columns.push_back(frame.column(j));
  return GiveRows<std::string>(frame, options, sink, [&](int64_t begin, int64_t end, std::string* text) {
    text->clear();
    for (int64_t i = begin; i < end; ++i) AppendRow(frame, columns, i, text);
    return OkStatus();
  });
}

}  // namespace heddle::ops
