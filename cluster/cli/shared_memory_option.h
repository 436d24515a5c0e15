// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cluster/cli/arguments.h"

namespace heddle::cluster::cli {

/// --no-shared-memory of the verbs that start executors.
inline constexpr Option kNoSharedMemoryOption = {
    "no-shared-memory", Option::Kind::kFlag, "",
    "executors of this machine exchange values by sockets alone"};

}  // namespace heddle::cluster::cli
