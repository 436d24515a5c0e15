// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "ops/files/script_paths.h"

namespace heddle::ops {

/// A folder that is held open, and what it holds.
class FolderParts {
 public:
  /// Errors call the folder `path`.
  static Result<FolderParts> Open(const FilePlace& place, const std::string& path);

  const std::vector<std::string>& names() const { return names_; }  ///< Sorted.
  /// Where one of them is. A link is followed as `paths` has it.
  Result<FilePlace> Find(const std::string& name, const ScriptPaths& paths, ScriptPaths::Use use) const;

 private:
  FolderParts(FilePlace inside, std::string path) : inside_(std::move(inside)), path_(std::move(path)) {}

  FilePlace inside_;
  std::string path_;
  std::vector<std::string> names_;
};

}  // namespace heddle::ops
