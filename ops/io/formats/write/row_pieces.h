// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "ops/io/formats/file_format.h"
#include "ops/io/formats/ordered_pieces.h"

namespace heddle::ops {

/// So many rows of a frame become one piece: so short that many of them are little memory, and so long that
/// threads are busy with it.
inline int64_t RowsOfFramePiece(int64_t columns) {
  constexpr int64_t kCellsOfPiece = 1 << 14;
  return std::max<int64_t>(1, kCellsOfPiece / std::max<int64_t>(columns, 1));
}

/// Rows of a frame as text, made by all threads and given to `sink` in their order, packed as the options
/// say. `fill(begin, end, text)` puts those rows into a Text, which is used again: std::string, or a type
/// that becomes a string_view.
template <typename Text, typename Fill>
Status GiveRows(const Frame& frame, const WriteOptions& options, const ByteSink& sink, Fill fill) {
  struct Piece {
    int64_t begin = 0;
    int64_t end = 0;
    Text text;
    std::string packed;
  };
  const int64_t rows_of_piece = RowsOfFramePiece(frame.columns());
  int64_t next_row = 0;
  return GiveInOrder<Piece>(
      options.cancelled,
      [&](Piece* piece) {
        if (next_row >= frame.rows()) return false;
        piece->begin = next_row;
        piece->end = next_row = std::min(next_row + rows_of_piece, frame.rows());
        return true;
      },
      [&](Piece* piece) -> Status {
        HEDDLE_RETURN_IF_ERROR(fill(piece->begin, piece->end, &piece->text));
        return PackPiece(options.packing, piece->text, &piece->packed);
      },
      [&](Piece* piece) {
        const std::string_view text = piece->text;
        if (text.empty()) return OkStatus();
        return sink(options.packing ? std::string_view(piece->packed) : text);
      });
}

}  // namespace heddle::ops
