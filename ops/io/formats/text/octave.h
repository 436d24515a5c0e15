// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "ops/io/files/text_file.h"
#include "ops/io/formats/file_format.h"

namespace heddle::ops {

class ChunkLooks;  // ops/io/formats/chunk_looks.h

constexpr std::string_view kOctaveMark = "# Created by Oct";

/// Matrices in text files of Octave (save -text): lines of "# name:", "# type:" and sizes, then the cells.
/// dataset= says which variable; without it the only one that is a matrix of numbers. Full ones stand row by
/// row, those of integers and of more than two indexes cell by cell down the columns, sparse ones a cell a
/// line. The first index counts rows, all others together columns.
Result<FileSummary> SummarizeOctave(const ReadOptions& options, const TextFile& text, ChunkLooks& looks);
Result<Matrix> ReadOctave(const ReadOptions& options, const FileSummary& summary, const TextFile& text,
                          int64_t row_begin, int64_t row_end);

}  // namespace heddle::ops
