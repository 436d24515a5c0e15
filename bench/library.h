// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "bench/base/options.h"

namespace heddle::bench {

/// Calls of library functions on growing inputs (bench/library_cases.txt), one line a case and size: the best
/// time, and beside it, in turns, that of the same call with the functions of the folder options.data, where
/// one is given. A function that is not in that folder, or fails there, has no time beside it.
int RunLibrary(const BenchOptions& options, const std::vector<std::string>& files);

}  // namespace heddle::bench
