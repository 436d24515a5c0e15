// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "core/call_site.h"

namespace heddle::engine {

/// The calls of functions that are open where a block runs, the innermost first. Shared, so that calls are
/// the same as before if their address is. nullptr where nobody records them.
using OpenCalls = std::shared_ptr<const std::vector<CallSite>>;

}  // namespace heddle::engine
