// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actor/link.h"
#include "core/status.h"
#include "engine/session/control_channel.h"
#include "ops/base/machine_constants.h"

namespace heddle::cluster {

struct GrpcLinkOptions {
  std::string job;
  int attempt = 1;
  int rank = 0;
  int ranks = 1;
  std::string token;
  /// host:port (port 0: any free one), unix:PATH or unix-abstract:NAME. TLS when other machines can reach it.
  std::string listen = "127.0.0.1:0";
  int64_t repair_ms = 3'000;  ///< A peer that cannot be reached again for so long is lost.
  /// Messages and values of executors of this host go through memory that both see, where the system allows
  /// it (docs/transport.md, docs/rounds.md).
  bool shares_memory = true;
};

/// Another executor of the job.
struct LinkPeer {
  std::string endpoint;
  std::string certificate;  ///< That it shows; "" for one on this machine.
  std::string name;         ///< For messages: "worker 2 (pid 1234)".
};

struct LinkStatistics {
  int64_t bytes_sent = 0;  ///< Payload of values.
  int64_t bytes_received = 0;
  int64_t bytes_shared = 0;  ///< Of those received, through memory that both executors see.
  int64_t messages_sent = 0;
  int64_t writes = 0;   ///< Messages that were sent together count as one.
  int64_t wakes = 0;    ///< Peers on the same machine that slept and were woken.
  int64_t repairs = 0;  ///< Streams that broke and stood again.
};

/// The links of one executor to all others over gRPC: one control stream a pair, one data stream a direction,
/// each data stream on a connection of its own (HTTP/2 flow control is shared by the streams of a
/// connection). A stream that breaks is opened again, and goes on where it broke. On one host messages, and
/// the small values with them, go through rings in memory that both share (host_messages.h), and large values
/// come through memory that both see (docs/transport.md), as long as that works; the streams carry errors and
/// decisions, and tell when a peer is lost.
class GrpcLink : public actor::Link, public engine::ControlChannel {
 public:
  /// Binds the address and answers calls. kUnavailable when it cannot be bound.
  static Result<std::unique_ptr<GrpcLink>> Listen(const GrpcLinkOptions& options);

  /// Where peers reach this executor.
  virtual const std::string& endpoint() const = 0;
  /// What it shows them there; "" without TLS.
  virtual const std::string& certificate() const = 0;
  /// Before Connect. `handler` and `on_failure` outlive the link. on_failure is called at most once, on a
  /// thread of the link: a peer was lost (kUnavailable with its name) or gave up (its own status).
  virtual void Serve(actor::LinkHandler* handler, std::function<void(const Status& status)> on_failure) = 0;
  /// Links to every peer, by rank (own entry ignored); returns when all links stand.
  virtual Status Connect(const std::vector<LinkPeer>& peers, int64_t timeout_ms = 20'000) = 0;

  /// Tells every peer that this rank gives up; waits (at most about a second) until they know.
  virtual void Fail(const Status& why) = 0;
  /// Says that this rank's program has ended and waits until all others have ended and know, or failed.
  /// Serves pulls meanwhile.
  virtual Status Finish() = 0;
  virtual LinkStatistics statistics() const = 0;
  /// How fast this rank reaches others (link_probe.h). Once connected; the others answer whatever they do.
  virtual ops::LinkRates MeasureLinks() = 0;
  /// Whether messages and values go through memory that this executor and that rank share.
  virtual bool SharesMemoryWith(size_t rank) const = 0;
};

}  // namespace heddle::cluster
