// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/base/options.h"

namespace heddle::bench {

/// What scripts cost that are not bound by their data: scalar operators, calls, blocks of operators on small
/// matrices, matrices and lists that grow in loops, the way from text to program, and rounds of a loop by
/// plans (rounds.h). One line a case.
int RunControl(const BenchOptions& options);

}  // namespace heddle::bench
