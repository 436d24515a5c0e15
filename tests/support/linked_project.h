// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "tests/support/process.h"

namespace heddle::testing_support {

/// A folder in which paths mean what they do at the root of the project, for programs that may write: links
/// to the folders with scripts and data, and a folder `build`. What is written beside them goes with it.
class LinkedProject {
 public:
  LinkedProject() {
    for (const char* const name : {"bench", "examples", "tests"})
      std::filesystem::create_directory_symlink(std::string(HEDDLE_SOURCE_DIR "/") + name,
                                                folder_.path() + "/" + name);
    std::filesystem::create_directory(folder_.path() + "/build");
  }
  const std::string& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

}  // namespace heddle::testing_support
