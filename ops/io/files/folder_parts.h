// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "ops/io/files/script_paths.h"

namespace heddle::ops {

/// What a folder holds.
class FolderParts {
 public:
  /// Errors call the folder `path`.
  static Result<FolderParts> Open(const FilePlace& place, const std::string& path);

  const std::vector<std::string>& names() const { return names_; }  ///< Sorted.
  /// Where one of them is, if the script may use it: a folder that it may use can hold files that it may not.
  Result<FilePlace> Find(const std::string& name, const ScriptPaths& paths, ScriptPaths::Use use) const;

 private:
  explicit FolderParts(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::vector<std::string> names_;
};

}  // namespace heddle::ops
