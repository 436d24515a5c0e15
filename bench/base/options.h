// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace heddle::bench {

struct BenchOptions {
  bool json = false;
  int threads = 1;
  int64_t cells = 100'000'000;  ///< Of the dense matrices.
  std::string plan = "cost";    ///< --fusion of the fusion bench.
  std::string data;             ///< Argument X of the scripts of the optimiser bench; may be empty.
  std::string only;             ///< Cases whose name holds this text; all when empty.
  int rounds = 3;               ///< Runs of each script with each plan; the best counts.
};

}  // namespace heddle::bench
