// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cluster/master/master_hub.h"

namespace prometheus {
class Collectable;
}

namespace heddle::cluster {

/// What a master tells of its jobs and workers, for a MetricsServer. The hub outlives it.
std::shared_ptr<prometheus::Collectable> MasterMetrics(MasterHub* hub);

}  // namespace heddle::cluster
