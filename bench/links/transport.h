// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/base/options.h"

namespace heddle::bench {

/// Values from one executor to another on this machine, each pinned to a processor, one line a size: pulls
/// over the link through shared memory and over gRPC, beside raw TCP over the loopback and memcpy, four at a
/// time; GB/s, seconds of processors per GB at both ends, and ratios. Then the time of a control message and
/// its answer, idle and while values of 64 MB are pulled, and sums that all executors get (all_reduce.h).
/// Best of the rounds, in which all take turns.
int RunTransport(const BenchOptions& options);

/// The other process of it; `fd` is the socket to the first one.
int RunTransportPeer(int fd);

}  // namespace heddle::bench
