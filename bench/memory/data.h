// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "core/status.h"

namespace heddle::bench {

/// A matrix of 100 columns of random numbers in a file, and a vector of labels beside it.
struct LargeFile {
  std::string x;  ///< Path of the matrix.
  std::string y;  ///< Path of the labels, -1 and 1, n x 1, a binary file.
  int64_t rows = 0;
  int64_t cell_bytes = 0;  ///< Of the matrix in memory.
};

/// The same for the same size: binary, doubles in [-1, 1); csv, numbers of six digits behind the point. Made
/// by `heddle` (the path of its program) in panels where `folder` has no such file yet; about so many bytes.
Result<LargeFile> MakeLargeFile(const std::string& heddle, const std::string& folder, bool is_csv,
                                double gigabytes);

}  // namespace heddle::bench
