// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/values/matrix.h"
#include "ops/io/formats/read_chunks.h"

// Matrices in files of lines whose rows are entries: columns with values, all others are zeros. A first look
// counts them (FileSummary::chunk_lines, chunk_rows and chunk_stored), so that the matrix has its room before
// they are read once more.
namespace heddle::ops {

struct Entry {
  int32_t column = 0;
  double value = 0;
};

/// Puts rows into a matrix that has room for them.
class EntryRows {
 public:
  /// Where the next row and its entries go.
  struct Place {
    int64_t row = 0;
    int64_t entry = 0;
  };

  EntryRows(Matrix* matrix, int64_t stored) : matrix_(matrix), stored_(stored) {
    if (matrix_->IsSparse()) matrix_->mutable_row_offsets()[0] = 0;
  }

  /// Columns ascend. False where the row does not fit, as the file is another by now.
  bool Put(std::span<const Entry> entries, Place* place) {
    const auto count = static_cast<int64_t>(entries.size());
    if (place->row >= matrix_->rows() || place->entry + count > stored_) return false;
    if (count > 0 && (entries.front().column < 0 || entries.back().column >= matrix_->columns()))
      return false;
    if (matrix_->IsSparse()) {
      for (int64_t k = 0; k < count; ++k) {
        const Entry& entry = entries[static_cast<size_t>(k)];
        matrix_->mutable_column_indexes()[place->entry + k] = entry.column;
        matrix_->mutable_values()[place->entry + k] = entry.value;
      }
      matrix_->mutable_row_offsets()[place->row + 1] = place->entry + count;
    } else {
      double* const cells = matrix_->mutable_data() + place->row * matrix_->columns();
      std::fill_n(cells, matrix_->columns(), 0.0);
      for (const Entry& entry : entries) cells[entry.column] = entry.value;
    }
    place->entry += count;
    ++place->row;
    return true;
  }

 private:
  Matrix* const matrix_;
  const int64_t stored_;
};

/// Rows [row_begin, row_end) of such a file, in the format of the summary. visit_rows(chunk, text, &lines,
/// take) goes through the rows of a chunk in their order: take(entries), columns ascending and no value zero,
/// says whether to go on; `lines` counts the lines taken.
/// kDataLoss when the file changed since the summary; what visit_rows says; kResourceExhausted; kCancelled.
template <typename VisitRows>
Result<Matrix> ReadEntryRows(const ReadOptions& options, const FileSummary& summary, const TextFile& text,
                             int64_t row_begin, int64_t row_end, const VisitRows& visit_rows) {
  const LineChunks chunks = {summary.chunk_offsets, summary.chunk_lines};
  const auto is_wanted = [&](size_t c) {
    return std::max(row_begin, summary.chunk_rows[c]) < std::min(row_end, summary.chunk_rows[c + 1]);
  };
  // Calls take(entries), which says whether all is well, for the wanted rows of a chunk.
  const auto visit_wanted = [&](size_t c, std::string_view chunk, int64_t* lines, const auto& take) {
    int64_t row = summary.chunk_rows[c];
    const int64_t end = std::min(row_end, summary.chunk_rows[c + 1]);
    bool fits = true;
    HEDDLE_RETURN_IF_ERROR(visit_rows(c, chunk, lines, [&](std::span<const Entry> entries) {
      if (row >= row_begin) fits = take(entries);
      return fits && ++row < end;
    }));
    return fits && row == end ? OkStatus() : ItChanged(options);
  };
  // Entries of the wanted rows of each chunk; then where they begin. Of the first and the last chunk only
  // some rows may be wanted, which are gone through once more.
  std::vector<int64_t> begins(summary.chunk_offsets.size());
  HEDDLE_RETURN_IF_ERROR(VisitLineChunks(
      options, text, chunks, ChunkOrder::kAny,
      [&](size_t c) {
        const bool is_whole = row_begin <= summary.chunk_rows[c] && summary.chunk_rows[c + 1] <= row_end;
        if (is_whole) begins[c] = summary.chunk_stored[c + 1] - summary.chunk_stored[c];
        return is_wanted(c) && !is_whole;
      },
      [&](size_t c, std::string_view chunk, int64_t* lines) {
        return visit_wanted(c, chunk, lines, [&](std::span<const Entry> entries) {
          begins[c] += static_cast<int64_t>(entries.size());
          return true;
        });
      }));
  int64_t stored = 0;
  for (int64_t& begin : begins) stored += std::exchange(begin, stored);
  const int64_t rows = row_end - row_begin, columns = summary.shape.columns;
  HEDDLE_ASSIGN_OR_RETURN(Matrix matrix, summary.format == Format::kSparse
                                             ? Matrix::Sparse(rows, columns, stored)
                                             : Matrix::Dense(rows, columns));
  EntryRows placed(&matrix, stored);
  HEDDLE_RETURN_IF_ERROR(VisitLineChunks(
      options, text, chunks, ChunkOrder::kAny, is_wanted,
      [&](size_t c, std::string_view chunk, int64_t* lines) {
        EntryRows::Place place{std::max<int64_t>(0, summary.chunk_rows[c] - row_begin), begins[c]};
        HEDDLE_RETURN_IF_ERROR(visit_wanted(
            c, chunk, lines, [&](std::span<const Entry> entries) { return placed.Put(entries, &place); }));
        return place.entry == begins[c + 1] ? OkStatus() : ItChanged(options);
      }));
  return matrix;
}

}  // namespace heddle::ops
