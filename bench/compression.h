// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "bench/base/options.h"

namespace heddle::bench {

/// Compressed matrices beside dense ones, and CSR ones where less than half of the cells are not zero: bytes,
/// the time to compress beside that of reading the matrix once from memory, and operators and algorithms,
/// whose results must have the same bytes. Of `files`, which hold matrices that read() reads, or, without
/// files, of data of published shapes. `is_full`: all rows of the shapes; `options.data`: a folder in which
/// the matrices stay as csv files for peers/compression_systemds.py. Returns 1 where bytes differ.
int RunCompression(const BenchOptions& options, bool is_full, const std::vector<std::string>& files);

}  // namespace heddle::bench
