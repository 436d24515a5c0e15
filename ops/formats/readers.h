// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/formats/file_format.h"

// One pair of functions per format; file_format.h is the front door.
namespace heddle::ops {

Result<FileSummary> SummarizeCsv(const ReadOptions& options, std::string_view text);
Result<Matrix> ReadCsv(const ReadOptions& options, const FileSummary& summary, std::string_view text,
                       int64_t row_begin, int64_t row_end);

Result<FileSummary> SummarizeLibsvm(const ReadOptions& options, std::string_view text);
Result<Matrix> ReadLibsvm(const ReadOptions& options, const FileSummary& summary, std::string_view text,
                          int64_t row_begin, int64_t row_end);

/// kText and kMatrixMarket: one cell per line, in any order.
Result<FileSummary> SummarizeCells(const ReadOptions& options, std::string_view text);
Result<Matrix> ReadCells(const ReadOptions& options, const FileSummary& summary, std::string_view text,
                         int64_t row_begin, int64_t row_end);

/// Sparse when more than one column and at most this share of cells is stored.
constexpr double kSparseBelow = 0.4;
Format ChooseFormat(const Shape& shape, int64_t stored);

}  // namespace heddle::ops
