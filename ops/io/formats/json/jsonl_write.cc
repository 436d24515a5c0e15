// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "ops/io/formats/json/jsonl.h"
#include "ops/io/formats/json_line.h"
#include "ops/io/formats/write/row_pieces.h"

namespace heddle::ops {
namespace {

constexpr int64_t kCellsOfPiece = 1 << 14;

// The names as they stand before the values; empty for a frame without names.
Result<std::vector<std::string>> NamesInJson(const Schema& schema) {
  std::vector<std::string> texts;
  std::set<std::string_view> seen;
  for (const std::string& name : schema.names) {
    if (!seen.insert(name).second)
      return FailedPrecondition("write: two columns have the name '{}', in jsonl each name comes once", name);
    std::string text;
    if (!AppendJsonText(name, &text))
      return FailedPrecondition("write: the name of column {} is no UTF-8, which jsonl cannot hold",
                                texts.size() + 1)
          .WithNote("format binary holds any bytes");
    texts.push_back(text + ":");
  }
  return texts;
}

// False where a text is no UTF-8.
bool AppendValue(const Frame& frame, int64_t row, int64_t column, std::string* out) {
  if (frame.IsMissing(row, column)) {
    out->append("null");
    return true;
  }
  switch (StorageOf(frame.schema()->types[static_cast<size_t>(column)])) {
    case ColumnStorage::kTexts: return AppendJsonText(frame.At(row, column).AsString(), out);
    case ColumnStorage::kBooleans:
      out->append(frame.At(row, column).AsBoolean() ? "true" : "false");
      return true;
    case ColumnStorage::kDoubles:
      if (!std::isfinite(frame.At(row, column).AsDouble())) {
        out->push_back('"');
        frame.AppendText(row, column, out);
        out->push_back('"');
        return true;
      }
      break;
    case ColumnStorage::kIntegers: break;
  }
  frame.AppendText(row, column, out);
  return true;
}

Status AppendRow(const Frame& frame, int64_t row, int64_t rows_before, const std::vector<std::string>& names,
                 std::string* out) {
  out->push_back(names.empty() ? '[' : '{');
  for (int64_t j = 0; j < frame.columns(); ++j) {
    if (j > 0) out->push_back(',');
    if (!names.empty()) out->append(names[static_cast<size_t>(j)]);
    if (!AppendValue(frame, row, j, out))
      return FailedPrecondition("write: row {}, column {}: the text is no UTF-8, which jsonl cannot hold",
                                rows_before + row + 1, j + 1)
          .WithNote("format binary holds any bytes");
  }
  out->append(names.empty() ? "]\n" : "}\n");
  return OkStatus();
}

}  // namespace

Status WriteJsonl(const Frame& frame, const WriteOptions& options, const ByteSink& sink) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesInJson(*frame.schema()));
  return GiveRows<std::string>(
      frame, options, sink, [&](int64_t begin, int64_t end, std::string* text) -> Status {
        text->clear();
        for (int64_t i = begin; i < end; ++i)
          HEDDLE_RETURN_IF_ERROR(AppendRow(frame, i, options.rows_before, names, text));
        return OkStatus();
      });
}

}  // namespace heddle::ops
