// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/base/options.h"

namespace heddle::bench {

/// Compressed matrices beside dense and CSR ones, on data of published shapes: bytes, the time to compress
/// beside that of reading the matrix once from memory, and operators and algorithms, whose results must have
/// the same bytes. `is_full`: all rows of the shapes; `options.data`: a folder in which the matrices stay as
/// csv files for peers/compression_systemds.py. Returns 1 where bytes differ.
int RunCompression(const BenchOptions& options, bool is_full);

}  // namespace heddle::bench
