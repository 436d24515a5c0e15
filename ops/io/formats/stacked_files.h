// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/io/formats/file_format.h"

// A folder of files of which each is whole for itself, with a header of its own: their rows, one below the
// other, are one value.
namespace heddle::ops {

/// Whether the path of the options is such a folder.
bool AreStackedFiles(const ReadOptions& options, Files& files);

/// kDataLoss names the first file that is malformed, or has other columns than those before it.
Result<FileSummary> SummarizeStacked(const ReadOptions& options, Files& files);
/// Only files that have some of the rows are opened.
Result<Matrix> ReadStackedMatrix(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                                 int64_t row_end, Files& files);
Result<Frame> ReadStackedFrame(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                               int64_t row_end, Files& files);

}  // namespace heddle::ops
