// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "proto/master.pb.h"

namespace heddle::cluster::cli {

/// A worker as 'admin nodes --json' and 'admin top --json' show it.
nlohmann::ordered_json JsonOf(const NodeDescription& node);

}  // namespace heddle::cluster::cli
