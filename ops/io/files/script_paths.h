// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/environment/descriptor.h"
#include "core/recently_used.h"
#include "core/status.h"
#include "ops/io/files/file_roots.h"

struct stat;

namespace heddle::ops {

/// Where a file is: a name in a folder that is held open, so that nobody can put another folder in its place.
class FilePlace {
 public:
  /// A link of that name is not followed.
  FilePlace(Descriptor folder, std::string name)
      : folder_(std::make_shared<const Descriptor>(std::move(folder))), name_(std::move(name)) {}
  /// As the kernel finds it, links and all.
  explicit FilePlace(std::string path) : name_(std::move(path)) {}
  /// Another file of the same folder; a link of that name is not followed.
  FilePlace Sibling(const std::string& name) const;

  /// As openat() and fstatat() have it.
  int Open(int flags) const;
  bool Look(struct stat* status) const;

  int folder() const;
  const char* name() const { return name_.c_str(); }

 private:
  std::shared_ptr<const Descriptor> folder_;  // nullptr: of the process
  std::string name_;
};

/// The one place through which all paths of a script go. Links are followed first; then every folder on the
/// way is opened as what it is, without links, so that a link that takes its place between the look and the
/// opening gives an error. Thread-safe.
class ScriptPaths {
 public:
  /// Relative paths begin at `directory`, which is absolute; "" for a process whose working folder was
  /// deleted: then they are errors. Folders that `roots` names are found now: links that change later do not
  /// move them.
  ScriptPaths(std::string directory, FileRoots roots);

  enum class Use : uint8_t {
    kLook,    ///< Whether and what it is.
    kRead,    ///< Its bytes.
    kWrite,   ///< Missing folders are made.
    kRemove,  ///< A link is removed itself.
  };
  /// kDataLoss when the script may not use it, and why; kNotFound when its folder is not there.
  Result<FilePlace> Find(const std::string& path, Use use) const;

  /// From the root, but with its links and "..".
  std::string Absolute(const std::string& path) const;

 private:
  Result<FilePlace> FindOnce(const std::string& path, Use use, bool* moved) const;
  Status CheckOwnRead(const std::string& path, const std::string& absolute) const;
  Status CheckRoots(const std::string& path, const std::string& identity, Use use) const;
  Status CheckOwnFolders(const std::string& path, const std::string& identity, int folder, Use use) const;
  bool IsMarkedOwn(int folder, bool* by_other) const;

  const std::string directory_;
  const bool had_directory_;  // when this was made
  FileRoots roots_;           // with links followed
  std::vector<std::string> own_;
  mutable std::mutex mutex_;
  // Folders, by device and inode, that are known to be no own ones.
  mutable RecentlyUsedMap<std::pair<uint64_t, uint64_t>, std::monostate> unmarked_{1 << 14};
};

}  // namespace heddle::ops
