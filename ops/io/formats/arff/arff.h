// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/values/frame.h"
#include "core/values/matrix.h"
#include "ops/io/files/text_file.h"
#include "ops/io/formats/file_format.h"

// ARFF, the format of Weka and OpenML: @attribute lines that say the name and type of each column, then a row
// a line behind @data, with all its values or, in braces, with those that are not zero.
namespace heddle::ops {

class ChunkLooks;  // ops/io/formats/chunk_looks.h

/// True where the first line that is neither blank nor a comment is @relation or @attribute.
Result<bool> IsArff(const std::string& path, const InputFile& file);

/// A matrix: all columns are of numbers; a missing value is NaN. Sparse where few values are not zero.
Result<FileSummary> SummarizeArff(const ReadOptions& options, const TextFile& text, ChunkLooks& looks);
Result<Matrix> ReadArff(const ReadOptions& options, const FileSummary& summary, const TextFile& text,
                        int64_t row_begin, int64_t row_end);

/// A frame: numbers are FP64, those of type integer INT64 where each is one; all else are texts. Missing
/// values are missing cells. What a row in braces leaves out is 0, of a nominal column its first value.
Result<FileSummary> SummarizeArffFrame(const ReadOptions& options, const TextFile& text, ChunkLooks& looks);
Result<Frame> ReadArffFrame(const ReadOptions& options, const FileSummary& summary, const TextFile& text,
                            int64_t row_begin, int64_t row_end);

/// What stands before the first row: the attributes. Booleans are nominal, texts are strings.
std::string ArffBeginning(const Schema& schema);
/// Rows with all their values.
Status WriteArff(const Frame& frame, const WriteOptions& options, const ByteSink& sink);

}  // namespace heddle::ops
