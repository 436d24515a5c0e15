// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/io/formats/file_format.h"

namespace heddle::ops {

/// Matrices and tables in files of R (saveRDS(), save()): arrays, vectors, data frames, and the sparse
/// matrices of the package Matrix. dataset= says which object of a list or workspace; without it the only one
/// that is a matrix or table. The first index counts rows, all others together columns. A data frame is a
/// matrix where all its columns are numbers. NA is NaN in a matrix and missing in a frame.
Result<FileSummary> SummarizeRds(const ReadOptions& options, Files& files);
Result<Matrix> ReadRdsMatrix(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                             int64_t row_end, Files& files);
Result<Frame> ReadRdsFrame(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                           int64_t row_end, Files& files);

}  // namespace heddle::ops
