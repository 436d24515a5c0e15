// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "ops/io/formats/file_format.h"

namespace heddle::ops {

constexpr std::string_view kHdf5Mark = "\x89HDF\r\n\x1a\n";

/// Whether a file has the mark of HDF5: at its beginning, or behind a block of somebody else's, as MATLAB 7.3
/// and h5py's userblock_size put there, at byte 512, 1024, 2048 and so on up to `most`.
Result<bool> HasHdf5Mark(const InputFile& file, int64_t most);
/// Where nobody says what a file is: up to a megabyte.
Result<bool> IsHdf5(const std::string& path, const InputFile& file);

/// Matrices in files of HDF5, through its library (ops/io/formats/module/hdf5_module.cc). dataset= says which
/// one; without it systemdsh5, as SystemDS calls it, or the only one. The first index counts rows, all others
/// together columns; with transposed= the last one counts rows. Sparse matrices are those of MATLAB, Octave
/// and AnnData. What is written are doubles, not packed, and nothing else. kUnavailable where Heddle was
/// built without HDF5.
Result<FileSummary> SummarizeHdf5(const ReadOptions& options, Files& files);
Result<Matrix> ReadHdf5(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                        int64_t row_end, Files& files);
Status WriteHdf5(const Matrix& matrix, const WriteOptions& options, const ByteSink& sink);

}  // namespace heddle::ops
