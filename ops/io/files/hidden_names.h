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

/// Takes the lock of what this process has just made under a hidden name; false when a sweeper was faster.
/// Who writes holds the lock, so that the lock of what a killed process left is free. A file system without
/// locks keeps such files.
bool LockHidden(int fd);

/// The hidden names of this process, each with the descriptor of its folder, so that a process that ends in
/// the midst of its work can take them away. Thread-safe.
class HiddenNames {
 public:
  static HiddenNames& OfProcess();

  /// Hears of the path of every name before there is anything of it, and with `is_gone` when nothing is left;
  /// nullptr: nobody does. For who clears up behind this process, which may be killed.
  void Tell(std::function<void(const std::string& path, bool is_gone)> listener);
  void Add(int folder, const std::string& name);
  void Remove(int folder, const std::string& name);
  /// Calls `rename`, which gives the content its place, unless the process is about to end. What it gives.
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

/// Removes what writers have left who were killed in the moment in which their new content had a name: its
/// lock is free then. Thread-safe.
class AbandonedParts {
 public:
  /// Those of an open folder, the first time that it is named.
  void RemoveOnce(int folder);

 private:
  std::mutex mutex_;
  std::set<std::pair<uint64_t, uint64_t>> seen_;  // by device and inode
};

}  // namespace heddle::ops
