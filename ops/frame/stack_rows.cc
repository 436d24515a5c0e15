// SPDX-License-Identifier: Apache-2.0
#include "ops/frame/stack_rows.h"

#include <cstring>

#include "ops/base/parallel.h"

namespace heddle::ops {
namespace {

constexpr int64_t kCopyGrainBytes = 256 << 10;

void CopyBytes(const void* from, void* to, int64_t bytes) {
  ParallelFor(bytes, kCopyGrainBytes, [&](int64_t begin, int64_t end) {
    std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
                static_cast<size_t>(end - begin));
  });
}

// The cells of `piece` go to row `row` of `whole`, its texts behind byte `text_at` of its texts.
void CopyCells(const Column& piece, Column* whole, int64_t row, int64_t text_at) {
  if (piece.rows() == 0) return;
  if (piece.MayMiss()) std::memcpy(whole->mutable_missing() + row, piece.missing(), piece.rows());
  switch (piece.storage()) {
    case ColumnStorage::kDoubles:
      CopyBytes(piece.doubles(), whole->mutable_doubles() + row, piece.rows() * int64_t{sizeof(double)});
      return;
    case ColumnStorage::kIntegers:
      CopyBytes(piece.integers(), whole->mutable_integers() + row, piece.rows() * int64_t{sizeof(int64_t)});
      return;
    case ColumnStorage::kBooleans:
      CopyBytes(piece.booleans(), whole->mutable_booleans() + row, piece.rows());
      return;
    case ColumnStorage::kTexts: {
      const int64_t* const from = piece.offsets();
      int64_t* const to = whole->mutable_offsets() + row;
      for (int64_t i = 0; i <= piece.rows(); ++i) to[i] = text_at + from[i] - from[0];
      CopyBytes(piece.texts() + from[0], whole->mutable_texts() + text_at, piece.text_bytes());
      return;
    }
  }
}

Result<Column> StackColumn(std::span<const Frame> pieces, int64_t column, int64_t rows) {
  int64_t text_bytes = 0;
  bool may_miss = false;
  for (const Frame& piece : pieces) {
    const Column cells = piece.column(column);
    text_bytes += cells.text_bytes();
    may_miss = may_miss || cells.MayMiss();
  }
  const ColumnType type = pieces[0].schema()->types[static_cast<size_t>(column)];
  HEDDLE_ASSIGN_OR_RETURN(Column whole, Column::Make(type, rows, text_bytes, may_miss));
  if (whole.storage() == ColumnStorage::kTexts) whole.mutable_offsets()[0] = 0;
  if (whole.storage() == ColumnStorage::kTexts) whole.mutable_offsets()[0] = 0;
  int64_t row = 0;
  int64_t text_at = 0;
  for (const Frame& piece : pieces) {
    const Column cells = piece.column(column);
    CopyCells(cells, &whole, row, text_at);
    row += cells.rows();
    text_at += cells.text_bytes();
  }
  return whole;
}

Result<Frame> StackColumns(std::span<const Frame> pieces, int64_t rows) {
  std::vector<Column> columns;
  for (int64_t j = 0; j < pieces[0].columns(); ++j) {
    HEDDLE_ASSIGN_OR_RETURN(Column column, StackColumn(pieces, j, rows));
    columns.push_back(std::move(column));
  }
  return Frame(pieces[0].schema(), std::move(columns));
}

}  // namespace

Result<Frame> StackRows(std::span<const Frame> pieces) {
  HEDDLE_CHECK(!pieces.empty(), "rows are stacked from at least one piece");
  int64_t rows = 0;
  for (const Frame& piece : pieces) {
    if (*piece.schema() != *pieces[0].schema())
      return Internal("pieces of a frame have columns ({}) and ({})", pieces[0].schema()->ToText(),
                      piece.schema()->ToText());
    rows += piece.rows();
  }
  return pieces.size() == 1 ? pieces[0] : StackColumns(pieces, rows);
}

Result<Frame> CopyRows(const Frame& frame) { return StackColumns({&frame, 1}, frame.rows()); }

}  // namespace heddle::ops
