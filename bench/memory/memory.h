// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "bench/base/options.h"

namespace heddle::bench {

/// Sizes of the memory bench.
struct MemoryBenchOptions {
  double gigabytes = 12;      ///< Of the binary file.
  double csv_gigabytes = 6;   ///< Of the csv file.
  std::string memory = "1g";  ///< --memory of the scripts.
  /// What runs peers: a program and its words, with blanks between; bench/peers/memory.py tells what it is
  /// asked. Empty: none.
  std::string peers;
};

/// Scripts (bench/scripts/memory) over files larger than --memory, in a control group that holds what
/// docs/memory.md promises: seconds beside reading the file alone (csv: decoding it alone) and beside peers,
/// in turns, each after the page cache was dropped; most memory without page cache; bytes that the disk gave
/// and took; whether the bytes of the result are those of a run in memory. The exit status is 1 where a
/// script fails, its bytes differ or its memory is more than the promise.
int RunMemory(const BenchOptions& options, const MemoryBenchOptions& memory);

}  // namespace heddle::bench
