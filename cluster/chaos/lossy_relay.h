// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/status.h"

namespace heddle::cluster {

/// Stands between executors of this machine and loses some of their messages, each with the connection that
/// it comes over, as a network does: both ends see a broken connection, and what was on its way is gone. One
/// thread.
class LossyRelay {
 public:
  /// A value of several megabytes is many messages and starts over with its connection: the loss of such a
  /// message makes the next loss of one between the same two ranks half as likely.
  static constexpr size_t kPartOfValueBytes = 64 << 10;

  /// `share`: of the messages, above 0.
  static Result<std::unique_ptr<LossyRelay>> Start(double share, uint64_t seed);
  /// Closes all connections.
  virtual ~LossyRelay() = default;

  /// Where connections to `target` (unix-abstract:NAME) are taken that lose messages: an address of the same
  /// kind, one for each pair of ranks. kUnavailable when it cannot be bound.
  virtual Result<std::string> Open(const std::string& target) = 0;

  virtual int64_t messages() const = 0;  ///< The lost ones among them.
  virtual int64_t lost() const = 0;
};

}  // namespace heddle::cluster
