// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace heddle {

/// What the surroundings let this process hold, in bytes. kNoBound: nothing of that kind is set.
struct MemoryBounds {
  static constexpr int64_t kNoBound = std::numeric_limits<int64_t>::max();

  int64_t machine = kNoBound;        ///< Memory of the machine.
  int64_t control_group = kNoBound;  ///< The smallest limit of the control group and of those around it.
  int64_t address_space =
      kNoBound;  ///< What `ulimit -v` and `ulimit -d` leave beside what is mapped already.

  /// The smallest, and what sets it: "the machine's memory", "the control group", "ulimit".
  int64_t Smallest() const;
  const char* NameOfSmallest() const;
  /// What matrices, text and working memory may take so that the whole process stays inside: without a
  /// reserve for code, stacks and the memory of libraries. At most 80 % of the machine. `sharers` processes
  /// share machine and control group.
  int64_t DefaultLimit(int sharers = 1) const;
};

/// The bounds of this process. `root` is put before /proc and /sys: tests have a folder of their own.
MemoryBounds ReadMemoryBounds(const std::string& root = "");

/// How many processes of the control group of this process the kernel has killed because memory ran out; of
/// the machine where no group counts them; 0 where nobody does.
int64_t MemoryKills(const std::string& root = "");

/// ReadMemoryBounds().DefaultLimit() as it was when the process asked first.
int64_t DefaultMemoryLimit();

}  // namespace heddle
