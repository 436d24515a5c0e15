// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "ops/io/files/script_paths.h"

// Content on its way to a name that scripts gave: it lies beside its place under a hidden name, a file or a
// folder of files, until it takes that place or is removed.
namespace heddle::ops {

/// ".0123456789abcdef.part.heddle": short, so that every name that the file system takes can be replaced, and
/// random, as processes with the same number in different containers may share a folder.
std::string NewHiddenName();
bool IsHiddenName(std::string_view name);

/// Takes the lock of what this process has just made under a hidden name; false when AbandonedParts of
/// another process was faster. A writer holds the lock while it lives, so the lock of what a killed process
/// has left is free. On a file system without locks such files stay.
bool LockHidden(int fd);

/// The hidden names of this process, each with the descriptor of its folder, so that a process that ends in
/// the midst of its work can take them away. Thread-safe.
class HiddenNames {
 public:
  static HiddenNames& OfProcess();

  /// Sets the function that is told the path of every name before a file of it is made, and again with
  /// `is_gone` when no file is left; nullptr: none is told. Another process removes the files with it should
  /// this one be killed.
  void Tell(std::function<void(const std::string& path, bool is_gone)> listener);
  void Add(int folder, const std::string& name);
  void Remove(int folder, const std::string& name);
  /// Calls `rename`, which gives the content its place, and returns what that returns. Does not return when
  /// the process is about to end.
  bool TakePlace(const std::function<bool()>& rename);
  /// Removes all of them and keeps the lock: the process is about to end.
  void Abandon();

 private:
  std::mutex mutex_;
  std::function<void(const std::string&, bool)> listener_;
  std::set<std::pair<int, std::string>> names_;
};

/// Before the process ends in the midst of its work: nothing takes its place any more, and what has a hidden
/// name is removed.
void AbandonReplacements();

/// Removes a file, or a folder with the files in it, if it is there. False with errno where that fails.
bool RemoveEntry(int folder, const char* name);
/// Removes what stands under a hidden name, if it is still there.
void RemoveHidden(const FilePlace& place, const std::string& name);
/// The same for the path that HiddenNames::Tell() told of a process that has ended. Other paths stay.
void RemoveHiddenPath(const std::string& path);

/// Removes the hidden files of writers that were killed: their locks are free. Thread-safe.
class AbandonedParts {
 public:
  /// Those of an open folder, the first time that it is named.
  void RemoveOnce(int folder);

 private:
  std::mutex mutex_;
  std::set<std::pair<uint64_t, uint64_t>> seen_;  // by device and inode
};

}  // namespace heddle::ops
