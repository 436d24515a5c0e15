// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/text/double_text.h"
#include "ops/text/text.h"

namespace heddle::ops {
namespace {

void AppendCell(const Frame& frame, int64_t row, int64_t column, int decimals, std::string* out) {
  if (frame.IsMissing(row, column)) {
    out->append("null");
  } else if (frame.schema()->types[static_cast<size_t>(column)] == ColumnType::kFloat64) {
    out->append(FormatFixed(frame.At(row, column).AsDouble(), decimals));
  } else {
    frame.AppendText(row, column, out);
  }
}

}  // namespace

std::string FrameToText(const Frame& frame, const TextLayout& layout) {
  return FrameToText(frame, frame.shape(), layout);
}

std::string FrameToText(const Frame& frame, Shape whole, const TextLayout& layout) {
  const int64_t rows = std::clamp<int64_t>(layout.rows, 0, frame.rows());
  const int64_t columns = std::clamp<int64_t>(layout.columns, 0, frame.columns());
  const Schema& schema = *frame.schema();
  std::string text =
      fmt::format("# FRAME: nrow = {}, ncol = {}{}#", whole.rows, whole.columns, layout.line_end);
  for (int64_t j = 0; j < columns; ++j) text += layout.separator + schema.NameOf(j);
  text += layout.line_end + "#";
  for (int64_t j = 0; j < columns; ++j)
    text.append(layout.separator).append(Name(schema.types[static_cast<size_t>(j)]));
  text += layout.line_end;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      if (j > 0) text += layout.separator;
      AppendCell(frame, i, j, layout.decimals, &text);
    }
    text += layout.line_end;
  }
  return text;
}

}  // namespace heddle::ops
