// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/status.h"
#include "proto/compile.pb.h"

namespace heddle::cluster {

/// What one script may take of a server that compiles it for somebody else.
struct CompileLimits {
  int at_a_time = 2;                        ///< Scripts that are compiled at once.
  int64_t memory_bytes = int64_t{2} << 30;  ///< Of the process.
  int64_t most_ns = 60'000'000'000;         ///< From its start on.
  bool core_dumps = false;
  bool isolates = true;  ///< The kernel keeps the process in (cluster/executor/isolation.h).
};

/// Compiles in a process of its own (docs/decisions/0006), which the calling thread starts and waits for:
/// whatever becomes of that process, the caller goes on. The process is gone when this returns.
///
/// Errors, which name the script: kResourceExhausted when the process ran out of memory or was killed,
/// kInvalidArgument when it did not end within the time, kInternal when the compiler crashed, kUnavailable
/// when something else ended it or it could not be started, kCancelled when `given_up`, which is asked now
/// and then, said that nobody waits for the result. What is wrong with the script itself is the status of the
/// reply. `binary`: program to start in place of this one.
Result<CompileReply> CompileInProcess(CompileRequest request, const CompileLimits& limits,
                                      const std::function<bool()>& given_up, const std::string& binary = "");

}  // namespace heddle::cluster
