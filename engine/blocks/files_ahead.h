// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ops/io/files/files.h"

namespace heddle::engine {

struct FilesAheadLimits {
  int64_t most_file_bytes = int64_t{128} << 20;      ///< As stored.
  int64_t most_unpacked_bytes = int64_t{256} << 20;  ///< Of a compressed file.
};

/// Files of a user as the master looks at them, for the sizes of what a script reads: ordinary files of
/// bounded size that this process may read and `roots` let the script use, and nothing else. What is read is
/// a copy, so that nobody can pull a file from under the master. Whatever is refused is kUnavailable: the
/// executors will see for themselves.
std::unique_ptr<ops::Files> MakeFilesAhead(const std::string& directory, const ops::FileRoots& roots = {},
                                           const FilesAheadLimits& limits = {});

/// Knows no file at all.
std::unique_ptr<ops::Files> MakeNoFiles();

}  // namespace heddle::engine
