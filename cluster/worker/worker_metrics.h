// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "cluster/worker/worker_executors.h"

namespace prometheus {
class Collectable;
}

namespace heddle::cluster {

/// What a worker tells of itself, for a MetricsServer. The executors outlive it; `is_connected` tells whether
/// there is a master.
std::shared_ptr<prometheus::Collectable> WorkerMetrics(WorkerExecutors* executors, int threads,
                                                       int64_t memory_bytes,
                                                       std::function<bool()> is_connected);

}  // namespace heddle::cluster
