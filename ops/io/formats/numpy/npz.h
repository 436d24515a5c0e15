// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/io/formats/file_format.h"
#include "ops/io/formats/numpy/zip_file.h"

namespace heddle::ops {

/// Zip archives of arrays, as NumPy's savez() and savez_compressed() write them. dataset= says which array;
/// without it the archive has one, or those that are a sparse matrix of SciPy together
/// (ops/io/formats/numpy/sparse_npz.h). What is written is one array: dataset=, else arr_0; with sparse=TRUE
/// a sparse matrix.
Result<FileSummary> SummarizeNpz(const ReadOptions& options, Files& files);
Result<Matrix> ReadNpz(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                       int64_t row_end, Files& files);
Status WriteNpz(const Matrix& matrix, const WriteOptions& options, const ByteSink& sink);

}  // namespace heddle::ops
