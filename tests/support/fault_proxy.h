// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace heddle::testing_support {

/// A TCP proxy on loopback in the place of a network between two processes, which a test makes worse. What it
/// does at random follows from its seed. Thread-safe; one thread of its own.
class FaultProxy {
 public:
  /// What every connection suffers.
  struct Conditions {
    std::chrono::milliseconds delay{0};   ///< From one end to the other; each way.
    std::chrono::milliseconds jitter{0};  ///< At most so much more, drawn anew for each piece: connections
                                          ///< overtake each other, the bytes of one stay in order.
    int64_t bytes_per_second = 0;         ///< Of one way of a connection; 0: as fast as it goes.
    double broken = 0;   ///< Share of the pieces (64 KiB at most) that break their connection: 0 to 1.
    double flipped = 0;  ///< Share of the pieces in which one bit arrives as the other.
  };
  enum class Way : uint8_t { kToTarget, kToCaller, kBoth };

  explicit FaultProxy(const std::string& target, uint64_t seed = 1);  ///< host:port on loopback
  ~FaultProxy();                                                      ///< Resets all connections.
  FaultProxy(const FaultProxy&) = delete;

  const std::string& endpoint() const { return endpoint_; }

  void Set(const Conditions& conditions);
  /// Nothing comes through that way until Mend(), and then what was sent meanwhile, in order: as by a network
  /// that loses all packets for a while. Connections are made and stay open all the same.
  void Cut(Way way = Way::kBoth);
  /// The connections that are there, and those that are made until Mend(), carry nothing any more, for ever,
  /// and nobody is told: as when a machine in between has forgotten them (half-open connections).
  void Forget();
  /// Ends Cut(), Forget() and Refuse().
  void Mend();
  /// Resets all connections; new ones are served.
  void Break();
  /// Resets all connections, and every new one at once, until Mend().
  void Refuse();

  int64_t accepted() const;  ///< Connections so far.
  int64_t broken() const;    ///< Those of them that Conditions::broken has broken.
  int64_t flipped() const;   ///< Pieces in which a bit was flipped.

 private:
  class Impl;
  void Do(std::function<void(Impl&)> change);

  std::string endpoint_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle::testing_support
