// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ops/io/files/files.h"

namespace heddle::engine {

struct PlanningFileLimits {
  int64_t most_file_bytes = int64_t{128} << 20;      ///< As stored.
  int64_t most_unpacked_bytes = int64_t{256} << 20;  ///< Of a compressed file.
};

/// The files of a user as the process reads them that makes plans for a job before it runs, to know the sizes
/// of what the script reads. Only ordinary files of bounded size are opened that this process may read and
/// `roots` let the script use. They are copied to memory, because their owner may cut them off at any moment.
/// All else is kUnavailable, and its size unknown until the job runs.
std::unique_ptr<ops::Files> MakePlanningFiles(const std::string& directory, const ops::FileRoots& roots = {},
                                              const PlanningFileLimits& limits = {});

/// No file is there.
std::unique_ptr<ops::Files> MakeNoFiles();

}  // namespace heddle::engine
