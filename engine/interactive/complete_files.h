// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heddle::engine {

/// The paths of files that begin with `path`, which is relative to `directory` ("": the working directory) or
/// absolute. Folders end in "/"; names that begin with a dot are left out unless one has been typed.
std::vector<std::string> FilesBeginningWith(std::string_view path, const std::string& directory);

}  // namespace heddle::engine
