// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/status.h"

namespace heddle::cluster {

/// The token in the first line of a file. It travels in a header of every call, so that it has 16 to 4096
/// characters of ASCII without blanks: kUsage otherwise. kPermissionDenied when others can write the file, as
/// whoever writes it decides who may command the cluster; where others can read it, a warning is logged.
/// kNotFound when it cannot be read.
Result<std::string> ReadToken(const std::string& path);

}  // namespace heddle::cluster
