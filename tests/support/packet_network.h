// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace heddle::testing_support {

/// Some hosts on one network: network namespaces of this machine, each with a TUN device, and a switch in
/// this process that hands on their IP packets and loses, delays and reorders them. TCP, TLS and gRPC are the
/// real ones and see what a bad network does. Needs the rights of root; thread-safe.
class PacketNetwork {
 public:
  struct Conditions {
    double loss = 0;                      ///< Share of the packets that are lost: 0 to 1.
    std::chrono::milliseconds delay{0};   ///< Of each packet,
    std::chrono::milliseconds jitter{0};  ///< and at most so much more: packets overtake each other.
  };

  /// nullptr with `*why_not` on a machine where that is not possible.
  static std::unique_ptr<PacketNetwork> Make(size_t hosts, uint64_t seed, std::string* why_not);
  ~PacketNetwork();
  PacketNetwork(const PacketNetwork&) = delete;

  static std::string AddressOf(size_t host) { return "10.77.0." + std::to_string(host + 1); }
  /// What stands before the words of a command that is to run on that host.
  std::vector<std::string> Within(size_t host) const;

  void Set(const Conditions& conditions);
  /// Loses every packet from one host to the other, until Mend(); those of the other way arrive.
  void Cut(size_t from, size_t to);
  void Mend();

  int64_t passed() const;  ///< Packets.
  int64_t lost() const;    ///< By Conditions::loss and Cut().

 private:
  class Impl;
  explicit PacketNetwork(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle::testing_support
