// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "core/status.h"

// The folder in which a master or a worker keeps its state, and where the other verbs find a master without a
// flag.
namespace heddle::cluster {

/// Makes a folder that only this user may enter, with those above it, and marks it as Heddle's own, so that
/// scripts are kept out of it (ops/io/files/own_folders.h). kPermissionDenied when that is not
/// possible or when others may enter it.
Status MakePrivateFolder(const std::string& path);

/// Held by one process at a time; given back when it ends, however that is.
class FolderLock {
 public:
  /// nullptr when another process holds it.
  static Result<std::unique_ptr<FolderLock>> TryTake(const std::string& path);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  explicit FolderLock(int fd) : fd_(fd) {}
  const int fd_;
};

/// Writes a file that only this user may read, whole or not at all.
Status WritePrivateFile(const std::string& path, const std::string& text);
/// The first line of a small file, or device. kNotFound when it cannot be read, kUsage when it is longer than
/// 8 KiB.
Result<std::string> ReadFirstLine(const std::string& path);
/// The first line of `path`, made (MakeSecret) when there is no such file; `is_new`, which may be nullptr,
/// says whether.
Result<std::string> ReadOrMakeSecret(const std::string& path, bool* is_new = nullptr);

}  // namespace heddle::cluster
