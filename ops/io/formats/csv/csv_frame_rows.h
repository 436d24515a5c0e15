// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/io/files/text_file.h"
#include "ops/io/formats/file_format.h"

namespace heddle::ops {

/// Rows [row_begin, row_end) of a frame in a csv file, all of them records of the file. Two passes, both in
/// parallel: the first adds up what the texts of each column take, the second puts every cell where it
/// belongs, so that nothing but the frame is in memory, and a piece of the file for each thread.
Result<Frame> ReadCsvFrameRows(const ReadOptions& options, const FileSummary& summary, const TextFile& text,
                               int64_t row_begin, int64_t row_end);
/// A blank line in a frame of one column is a missing cell; elsewhere it is an error, as in a matrix.
inline bool MayRowsBeBlank(size_t columns) { return columns == 1; }

}  // namespace heddle::ops
