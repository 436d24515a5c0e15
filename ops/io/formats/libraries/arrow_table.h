// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/io/formats/file_format.h"

namespace heddle::ops {

/// Tables in files of Parquet and of Arrow (IPC, Feather), through their libraries
/// (ops/io/formats/module/arrow_module.cc). A frame has all columns, a matrix those of a table of numbers.
/// Each rank reads the groups of its rows. kUnimplemented where Heddle was built without them.
Result<FileSummary> SummarizeArrow(const ReadOptions& options, Files& files);
Result<Matrix> ReadArrowMatrix(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                               int64_t row_end, Files& files);
Result<Frame> ReadArrowFrame(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                             int64_t row_end, Files& files);
/// A matrix is a table of doubles, C1 to Cn.
Status WriteArrowMatrix(const Matrix& matrix, const WriteOptions& options, const ByteSink& sink);
Status WriteArrowFrame(const Frame& frame, const WriteOptions& options, const ByteSink& sink);

}  // namespace heddle::ops
