// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/environment/clock.h"
#include "core/status.h"

namespace heddle::cluster {

/// One call: who wanted what of a master, and what became of it. Holds no token and nothing of what scripts
/// compute.
struct AuditRecord {
  std::string token;  ///< Its name; "" of a stranger.
  std::string owner;
  std::string peer;  ///< "127.0.0.1:4711", "user 1000, process 77"; of a stranger who may be one of several:
                     ///< all of them.
  std::string rpc;   ///< "Jobs.Cancel"
  std::string object;   ///< "j17"; "" where the call names none.
  std::string outcome;  ///< A code of gRPC: "OK", "PERMISSION_DENIED".
  std::string why;      ///< Of a refusal; "" where the outcome says all.
};

struct AuditLogOptions {
  int64_t most_bytes =
      int64_t{64} << 20;    ///< Of the file; then it becomes audit.log.1, that one audit.log.2, ...
  int kept_files = 8;       ///< Beside the one that is written.
  int most_strangers = 10;  ///< Lines of WriteStranger in a second.
};

/// <folder>/audit.log: one line of JSON for each record, behind each other. Thread-safe.
class AuditLog {
 public:
  /// kPermissionDenied when the file cannot be written.
  static Result<std::unique_ptr<AuditLog>> Open(const std::string& folder, const AuditLogOptions& options,
                                                Clock& clock);
  virtual ~AuditLog() = default;
  /// A line that cannot be written is told on standard error, and the master goes on.
  virtual void Write(const AuditRecord& record) = 0;
  /// The same of somebody who has no token. A few of them a second are written; of more the number is, so
  /// that nobody pushes out what others did.
  virtual void WriteStranger(const AuditRecord& record) = 0;
};

}  // namespace heddle::cluster
