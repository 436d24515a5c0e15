// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "ops/formats/file_format.h"

namespace heddle::ops {

constexpr std::string_view kHdf5Mark = "\x89HDF\r\n\x1a\n";

/// Matrices in files of HDF5, through its library (ops/formats/module/hdf5_module.cc). dataset= says which
/// one; without it systemdsh5, as SystemDS calls it, or the only one. The first index counts rows, all others
/// together columns. What is written are doubles, not packed, and nothing else. kUnavailable where Heddle was
/// built without HDF5.
Result<FileSummary> SummarizeHdf5(const ReadOptions& options, Files& files);
Result<Matrix> ReadHdf5(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                        int64_t row_end, Files& files);
Status WriteHdf5(const Matrix& matrix, const WriteOptions& options, const ByteSink& sink);

}  // namespace heddle::ops
