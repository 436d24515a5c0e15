// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace heddle::fuzz {

/// How long a process may work before it is asked to end, and how long it may take to do so.
struct Limits {
  /// Of the process and its children; then it gets SIGINT, as from Ctrl-C.
  double cpu_s = 3 * testing_support::kPatience;
  double wall_s = 40 * testing_support::kPatience;   ///< The same, for a process that waits.
  double still_s = 15 * testing_support::kPatience;  ///< No processor time for so long: it stands still.
  double grace_s = 20 * testing_support::kPatience;  ///< After SIGINT; then it is killed.
  int64_t most_bytes = testing_support::kPatience * (int64_t{1200} << 20);  ///< In memory; killed beyond.
  int64_t most_output = int64_t{128} << 20;  ///< Of one file, standard output too; more cannot be written.
};

/// How a process ended.
struct Watched {
  enum class End : uint8_t {
    kItself,
    kInterrupted,  ///< At the SIGINT it got after the time of Limits.
    kKilled,       ///< It did not end at that.
    kStoodStill,
    kTooLarge,
  };
  End end = End::kItself;
  int code = 0;            ///< Exit code, if no signal ended it.
  int signal = 0;          ///< That ended it; 0: none.
  int64_t peak_bytes = 0;  ///< Most resident memory of it or of any of its children.
  std::string output;
  std::string errors;
};

/// Runs words[0] in `folder`, with nothing to read, in a process group of its own, which is gone when this
/// returns.
Watched Watch(const std::vector<std::string>& words, const std::string& folder, const Limits& limits);

}  // namespace heddle::fuzz
