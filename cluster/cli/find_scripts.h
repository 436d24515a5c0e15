// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace heddle::cluster::cli {

/// The .dml files below a folder, sorted, as paths from it; those whose name begins with a dot are passed
/// over, and so are such folders. kNotFound without any; the message begins with `asked_by`.
Result<std::vector<std::string>> FindScripts(const std::string& folder, std::string_view asked_by);

}  // namespace heddle::cluster::cli
