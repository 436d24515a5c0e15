// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "bench/operators.h"

namespace heddle::bench {

/// Whole scripts with each --fusion, in turns, by the `heddle` beside this program: seconds without the time
/// that draws the data, bytes that operators moved, and how much faster than unfused that is. Predicted: what
/// the bytes saved take at the read probe. Every mode must print the same.
int RunScripts(const BenchOptions& options, const std::vector<std::string>& files);

/// What choosing fused operators takes in a whole run of each script, the best round; X=options.data is its
/// argument.
int RunOptimizer(const BenchOptions& options, const std::vector<std::string>& files);

}  // namespace heddle::bench
