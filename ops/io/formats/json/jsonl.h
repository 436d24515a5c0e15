// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "ops/io/files/text_file.h"
#include "ops/io/formats/file_format.h"
#include "ops/io/formats/json_line.h"

namespace heddle::ops {

class ChunkLooks;  // ops/io/formats/chunk_looks.h

/// Frames with a JSON object in each line, whose names are those of the columns in the order in which the
/// file first has them, or with an array in each line. A name that a line has not, and null, are missing
/// cells. The schema says the types; without one all are strings, of values that are none their text in the
/// file.
Result<FileSummary> SummarizeJsonl(const ReadOptions& options, const TextFile& text, ChunkLooks& looks);
Result<Frame> ReadJsonl(const ReadOptions& options, const FileSummary& summary, const TextFile& text,
                        int64_t row_begin, int64_t row_end);

/// The values of the first `rows` lines but for null, in their order, as the text of strings or as they stand
/// in the file. Time and memory are those of the values, however many columns the file has.
using JsonlVisitor = std::function<void(int64_t row, int64_t column, const JsonValue& value)>;
Status VisitJsonlCells(const ReadOptions& options, const FileSummary& summary, const TextFile& text,
                       int64_t rows, const JsonlVisitor& visit);

/// Objects with the names of the columns, where there are names, else arrays. What is no number, or infinite,
/// is a text, because JSON has no such numbers. kFailedPrecondition where a text is no UTF-8 or two columns
/// have one name.
Status WriteJsonl(const Frame& frame, const WriteOptions& options, const ByteSink& sink);

}  // namespace heddle::ops
