// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/values/value.h"
#include "ops/io/formats/file_format.h"

namespace heddle::ops {

/// A matrix (of doubles) or frame that is somewhere else: its rows are read when their turn comes.
struct PiecedValue {
  Shape shape;
  std::shared_ptr<const Schema> schema;  ///< Of a frame; nullptr: it is a matrix.
  int64_t rows_at_once = 1;              ///< A piece of so many is little memory.
  /// Rows [begin, end) as a matrix or frame; called for some rows more than once.
  std::function<Result<Value>(int64_t begin, int64_t end)> read;
};

/// As WriteValue, with the same bytes, in memory for a few pieces. Formats that have no place for rows one
/// after the other, and folders of files, get the whole at once. Where something of all rows has to be known
/// before the first (CanAppendRows of row_writer.h), all pieces are read twice.
Status WritePieces(const PiecedValue& value, const std::string& path, const WriteOptions& options,
                   Files& files);

}  // namespace heddle::ops
