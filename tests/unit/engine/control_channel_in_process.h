// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "engine/session/control_channel.h"

namespace heddle::engine {

/// Control channels of `ranks` sessions in one process; element r is the one of rank r. They share a queue a
/// rank and may outlive one another.
std::vector<std::unique_ptr<ControlChannel>> InProcessChannels(int ranks);

}  // namespace heddle::engine
