// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "cluster/executor/executor_process.h"
#include "core/status.h"

namespace heddle::cluster {

struct ExecutorLogLimits {
  int64_t most_file_bytes =
      1 << 20;         ///< Then the file becomes NAME.log.old, and an older one of that name goes.
  int most_logs = 64;  ///< Of the folder; the oldest go.
};

/// What an executor says on its standard error, in a file of bounded size: FOLDER/NAME.log. A log without a
/// word of an executor that ended well is removed.
class ExecutorLog {
 public:
  /// Makes the folder where it is missing. kUnavailable with the path when the file cannot be made.
  /// `said` (may be empty) is called with each text that goes to the file, on a thread of the log until
  /// End(), then on that of the caller.
  static Result<std::unique_ptr<ExecutorLog>> Open(const std::string& folder, const std::string& name,
                                                   std::function<void(std::string_view text)> said = {},
                                                   const ExecutorLogLimits& limits = {});
  virtual ~ExecutorLog() = default;

  /// Standard error of the executor. The log ends when all copies of it are closed, so that this one must be.
  virtual int write_end() const = 0;
  virtual void CloseWriteEnd() = 0;
  /// After the end of the executor: notes how it ended.
  virtual void End(const ExecutorExit& exit) = 0;

  /// After End(): "" when the log was removed.
  virtual const std::string& path() const = 0;
  /// After End(): the last line that the executor wrote, cut to what fits a message.
  virtual const std::string& last_line() const = 0;
};

}  // namespace heddle::cluster
