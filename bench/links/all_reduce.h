// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/base/options.h"

namespace heddle::bench {

/// The sum of a vector of doubles of each of 2 and of 4 executors, which all of them get: each adds up one
/// part, in the order of ranks, of which it pulls the terms; the others pull the part from it. One line for
/// each number of executors, size and way (shared memory, gRPC): milliseconds of one sum, the best round, and
/// GB/s of the vector. bench/peers/all_reduce.py runs it and Gloo in turns.
int RunAllReduce(const BenchOptions& options);

/// Another process of it; `fd` is the socket to the first one.
int RunAllReducePeer(int fd);

}  // namespace heddle::bench
