// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cluster/security/grpc_hello.h"
#include "core/programs/plan.h"
#include "core/status.h"
#include "core/values/value.h"

namespace heddle::cluster {

/// Pulls values of executors of the same host through memory that both see (docs/transport.md). Has a thread
/// of its own. Whatever is wrong with a connection, its pulls go another way, and nobody else notices.
class MemoryClient {
 public:
  using Done = std::function<void(Result<Value>)>;
  struct Events {
    /// A connection stands or never will. Called without a lock, on any thread.
    std::function<void()> settled;
    /// A pull that has to go another way. Called without a lock, on any thread.
    std::function<void(size_t rank, uint32_t run, RegisterId register_id, uint8_t slot, Done done)> elsewhere;
  };
  /// The counters, and what `events` needs, outlive it: all payload, and that which came through memory.
  struct Counters {
    std::atomic<int64_t>* bytes_received;
    std::atomic<int64_t>* bytes_shared;
  };
  /// kUnavailable when the process has no descriptor left.
  static Result<std::unique_ptr<MemoryClient>> Start(const Hello& own, Counters counters, Events events);
  virtual ~MemoryClient() = default;  ///< Ends the thread; pulls that are left go elsewhere first.

  /// Connects to the server of a peer by its name (MemoryServer::name). Once a peer; returns at once.
  virtual void Connect(size_t rank, const std::string& name) = 0;
  /// Whether the connection that Connect began stands or has failed; true without one.
  virtual bool IsSettled(size_t rank) const = 0;
  /// Whether the connection stands.
  virtual bool IsConnected(size_t rank) const = 0;
  /// Takes over a pull, and `done` with it. False, with `done` as it was, where there is no connection.
  virtual bool Pull(size_t rank, uint32_t run, RegisterId register_id, uint8_t slot, Done* done) = 0;
  /// Closes all connections: what they were fetching goes elsewhere, as do all later pulls.
  virtual void CloseAll() = 0;
};

}  // namespace heddle::cluster
