// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "core/status.h"

// Control groups of Linux, version 2, for processes that are to keep to a share of the machine.
namespace heddle::cluster {

/// The group of this process, made ready to have groups of others below it. The kernel wants processes in
/// leaves only: this process moves to a leaf of its own first.
class ControlGroups {
 public:
  /// nullptr where the kernel or the owner of the group does not allow it; `why_not` says what is missing, in
  /// a few words. `root` is put before /proc and /sys: tests have a folder of their own.
  static std::unique_ptr<ControlGroups> Prepare(std::string* why_not, const std::string& root = "");

  struct Limits {
    int64_t memory_bytes = 0;  ///< Beyond it the kernel kills what is in the group; 0: no limit.
    int threads = 1;           ///< Weight of its share of the processors when they are busy.
  };
  /// Makes a group, or takes the empty one of that name; its folder. `name` is one of a file.
  Result<std::string> Make(const std::string& name, const Limits& limits) const;

 private:
  explicit ControlGroups(std::string folder) : folder_(std::move(folder)) {}
  const std::string folder_;
};

/// Moves a process into a group; false when it could not.
bool EnterGroup(const std::string& folder, pid_t pid);
/// How many processes of the group the kernel has killed because memory ran out.
int64_t KillsInGroup(const std::string& folder);
/// memory.max of the group; 0 without one.
int64_t MemoryLimitOfGroup(const std::string& folder);
/// Removes a group in which no process is any more.
void RemoveGroup(const std::string& folder);

}  // namespace heddle::cluster
