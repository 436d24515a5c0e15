// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cluster/cli/arguments.h"

namespace heddle::cluster::cli {

/// --spill-folder of run, sim, repl and worker.
inline constexpr Option kSpillFolderOption = {
    "spill-folder", Option::Kind::kValue, "FOLDER",
    "where rows go that memory has no room for (default: $TMPDIR, or /tmp)"};
inline constexpr Option kSpillFolderOptions[] = {kSpillFolderOption};

/// What it says; "" without it. kUsage where it says nothing.
inline Result<std::string> ReadSpillFolder(const Arguments& arguments) {
  const auto folder = arguments.Value(kSpillFolderOption.name);
  if (folder && folder->empty()) return Usage("--spill-folder: the name of the folder is empty");
  return folder.value_or("");
}

}  // namespace heddle::cluster::cli
