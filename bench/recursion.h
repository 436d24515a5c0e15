// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/base/options.h"

namespace heddle::bench {

/// Recursive models (bench/scripts/recursion), forward, in single precision, by the `heddle` beside this
/// program: milliseconds a batch of trees in batches of nodes and, of few batches, by the interpreter. Then
/// the nanoseconds a node that a structure takes to become arrays. Trees are those of options.data, a file
/// of trees in brackets (packed or not), else random ones of the same sizes.
int RunRecursion(const BenchOptions& options);

}  // namespace heddle::bench
