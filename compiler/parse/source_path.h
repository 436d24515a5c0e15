// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace heddle::compiler {

/// `path` seen from `directory`: an absolute path stays, "" as directory changes nothing. Free of "." and
/// "name/..".
std::string JoinPath(const std::string& directory, const std::string& path);

}  // namespace heddle::compiler
