// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/environment/descriptor.h"
#include "core/status.h"
#include "ops/io/files/script_paths.h"

namespace heddle::cluster {

/// What was under the names that a run changes, before its first attempt changed them: an attempt that failed
/// leaves nothing, and the next one reads what the first one read. Files are kept by hard links beside their
/// places (copied where the file system has none), in hidden folders (ops/io/files/hidden_names.h): should
/// this process be killed, the next write there removes them. Not thread-safe.
class SavedFiles {
 public:
  /// As of ScriptPaths.
  SavedFiles(std::string directory, ops::FileRoots roots) : paths_(std::move(directory), std::move(roots)) {}
  /// Removes what it kept; what stands under the names stays as it is.
  ~SavedFiles();
  SavedFiles(const SavedFiles&) = delete;

  /// Before `path`, as the script names it, is changed: keeps what is there, the first time that it is named.
  Status Save(const std::string& path);
  /// Puts back what was there, after which nothing is kept. How many files and folders had changed. kDataLoss
  /// is the first failure of all; notes say under which names what could not be put back is then.
  Result<int64_t> Restore();

 private:
  struct Saved {
    Saved(ops::FilePlace at, std::string path) : place(std::move(at)), shown(std::move(path)) {}
    ops::FilePlace place;
    std::string shown;       // For messages.
    std::string hidden;      // Name of the folder beside the place; "" when nothing was there.
    bool is_folder = false;  // The hidden folder is what was there; else it holds that, as kOldName.
    Descriptor lock;         // Of the hidden folder, while this lives.
    Descriptor original;     // What was there: while it is open its inode stands for nothing else.
    dev_t device = 0;        // Of what was there, with `inode`: what stands there later is another one, as
    ino_t inode = 0;         // scripts replace files and never change them.
  };
  Status Keep(const struct stat& there, Saved* saved);
  static Result<bool> PutBack(const Saved& saved);
  static void Forget(Saved& saved);
  // The path of what was there, out of the way: nobody removes it.
  static std::string SetAside(Saved& saved);
  bool IsKnown(const ops::FilePlace& place) const;

  const ops::ScriptPaths paths_;
  std::vector<Saved> saved_;
};

}  // namespace heddle::cluster
