// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "actor/link.h"
#include "cluster/security/grpc_hello.h"
#include "core/status.h"

namespace heddle::cluster {

/// Answers the pulls of executors of the same host through memory that both see (docs/transport.md). Has a
/// thread of its own. Whoever is not of the same user, job and attempt is let go without a word.
class MemoryServer {
 public:
  /// `bytes_sent` outlives it. kUnavailable where the system allows no such memory or socket.
  static Result<std::unique_ptr<MemoryServer>> Start(const Hello& own, std::atomic<int64_t>* bytes_sent);
  virtual ~MemoryServer() = default;  ///< Ends the thread.

  /// What a peer must know to reach it.
  virtual const std::string& name() const = 0;
  /// Who knows the values; once, before any peer is told the name.
  virtual void SetHandler(actor::LinkHandler* handler) = 0;
};

}  // namespace heddle::cluster
