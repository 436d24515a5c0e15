// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cluster/link/ring_space.h"
#include "cluster/security/grpc_hello.h"
#include "core/environment/descriptor.h"
#include "core/status.h"
#include "engine/wire/value_wire.h"

// What two executors of one host say to each other about memory that both see (docs/transport.md): packets
// over a unix socket without a name in the file system.
namespace heddle::cluster {

enum class PacketKind : uint8_t {
  kWelcome = 1,  ///< writer -> reader: you belong to the job; pull what you like
  kRing = 2,     ///< writer -> reader: the ring, whose memory comes with the packet
  kFrame = 3,    ///< writer -> reader: a frame of a value, its payload in the ring
  kPull = 4,     ///< reader -> writer: which register slot
  kReturn = 5,   ///< reader -> writer: the ring was read so far
};

struct Packet {
  PacketKind kind = PacketKind::kPull;
  RingHandle handle;           ///< kRing: all of the ring. kFrame, kReturn: bytes of it.
  engine::FrameHeader header;  ///< kFrame, kPull.

  std::string Encode() const;
  /// kDataLoss for anything else.
  static Result<Packet> Decode(std::string_view bytes);
};

/// The first packet of a reader, and whether it may come from another rank of `own`'s attempt: the tokens are
/// compared in constant time, before anything else.
std::string EncodeHello(const Hello& hello);
bool CheckHello(const Hello& own, std::string_view bytes, int* rank);

/// A socket of packets on this host. Nothing waits: what cannot be done at once is done later.
class MemorySocket {
 public:
  enum class Outcome { kDone, kLater, kClosed };

  MemorySocket() = default;
  explicit MemorySocket(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

  /// `name`: as MakeName gives. Both kUnavailable, with what the kernel says.
  static Result<MemorySocket> Listen(const std::string& name);
  static Result<MemorySocket> Connect(const std::string& name);
  /// A name that nobody else uses or guesses.
  static std::string MakeName();
  /// False for what MakeName cannot have made.
  static bool IsName(std::string_view name);

  /// The next caller, when there is one.
  std::optional<MemorySocket> Accept() const;
  /// Whether the process at the other end belongs to this user.
  bool IsOfOwnUser() const;
  /// `descriptor` goes along unless it is -1.
  Outcome Send(std::string_view packet, int descriptor = -1) const;
  /// `descriptor`: what came along; more than one ends the connection.
  Outcome Receive(std::string* packet, Descriptor* descriptor) const;

  int fd() const { return descriptor_.get(); }
  void Close() { descriptor_ = Descriptor(); }

 private:
  Descriptor descriptor_;
};

}  // namespace heddle::cluster
