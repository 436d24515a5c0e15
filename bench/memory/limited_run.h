// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"

// Programs that run with a limit of memory that the kernel enforces, and what they take.
namespace heddle::bench {

/// A control group (version 1 or 2) with a limit of memory for everything that its processes touch, page
/// cache included. It is removed when it is destroyed; its processes have ended by then.
class ControlGroup {
 public:
  /// Where this process may make no control group, the programs run without a limit (`is_enforced()` is
  /// false, `why_not()` says why), and what they take is measured all the same.
  static std::unique_ptr<ControlGroup> Make(int64_t limit_bytes);
  ~ControlGroup();
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;

  bool is_enforced() const { return !folder_.empty(); }
  const std::string& why_not() const { return why_not_; }
  int64_t limit_bytes() const { return limit_bytes_; }
  /// The file that a process writes its number to in order to enter; "" where no limit is enforced.
  std::string ProcessesFile() const;
  /// Bytes of all its processes without page cache: anonymous memory and memory that they share. 0 where no
  /// limit is enforced.
  int64_t UncachedBytes() const;

 private:
  ControlGroup(std::string folder, bool is_first_version, int64_t limit_bytes, std::string why_not);

  std::string folder_;  // "": none.
  bool is_first_version_;
  int64_t limit_bytes_;
  std::string why_not_;
};

/// What a program took until it ended.
struct LimitedRun {
  std::string output;  ///< Standard output and error.
  int exit_code = 0;   ///< 128 + the signal that ended it.
  double seconds = 0;
  int64_t peak_uncached_bytes = 0;  ///< Most of ControlGroup::UncachedBytes(), looked at each 20 ms; without
                                    ///< a group most of the anonymous memory of the program's process.
  int64_t disk_read_bytes = 0;      ///< That the disk, and not the page cache, gave.
  int64_t disk_written_bytes = 0;
  bool was_stopped = false;  ///< It took longer than it was given.
};

/// Runs a program in the group. `words[0]` is looked up in PATH. kUnavailable when it cannot be started.
Result<LimitedRun> RunLimited(const std::vector<std::string>& words, const ControlGroup& group,
                              double most_seconds = 1e9);

/// Takes the pages of a file out of the page cache, after what is not on the disk has been written.
void DropFromPageCache(const std::string& path);

}  // namespace heddle::bench
