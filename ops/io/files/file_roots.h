// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::ops {

/// Which files a script may use (docs/daemons.md). As it is made: all.
struct FileRoots {
  enum class OwnFolders : uint8_t {
    kOpen,           ///< The paths are Heddle's own, not a script's.
    kClosedToOther,  ///< A script of who runs it: other users' are closed, and all are read-only.
    kClosed,         ///< What the script reads goes to others, or comes from others.
  };
  OwnFolders own_folders = OwnFolders::kOpen;

  /// A job: it may use files in the folders that follow, and no others.
  bool is_job = false;
  /// Folders that the submitting user names by --data-root, beside the working folder. These and `arguments`
  /// are not asked where the following say more.
  std::vector<std::string> named;
  /// Paths among the arguments: of a folder what it holds; of a file, there or not, what its folder holds.
  std::vector<std::string> arguments;
  /// --data-root of master and worker; an empty list allows all.
  std::vector<std::string> of_master, of_worker;
  /// Files and folders that are closed without a mark: tokens and keys that are kept elsewhere.
  std::vector<std::string> closed;
};

}  // namespace heddle::ops
