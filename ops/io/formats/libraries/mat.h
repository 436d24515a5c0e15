// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "ops/io/formats/file_format.h"

namespace heddle::ops {

constexpr std::string_view kMatMark =
    "MATLAB 5.0 MAT-f";  // of version 5, which versions 6 and 7 write as well

enum class MatVersion : uint8_t { kNone, k4, k5, k73 };

/// Which version of MATLAB's files it is; kNone: no such file. Version 4 has no mark: its first variable is
/// looked at. 7.3 is HDF5 behind a block of MATLAB's.
Result<MatVersion> VersionOfMat(const InputFile& file);
/// Where nobody says what a file is: of version 4 if its name ends in .mat as well.
Result<bool> IsMat(const std::string& path, const InputFile& file);

/// Matrices in MATLAB's files, as MATLAB has them: versions 4 and 5 through libmatio
/// (ops/io/formats/module/mat_module.cc), 7.3 through HDF5. dataset= says which variable; without it the only
/// one that is a matrix of numbers. kUnimplemented where Heddle was built without the library.
Result<FileSummary> SummarizeMat(const ReadOptions& options, Files& files);
Result<Matrix> ReadMat(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                       int64_t row_end, Files& files);

}  // namespace heddle::ops
