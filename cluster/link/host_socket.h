// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/environment/descriptor.h"

// Sockets of packets between processes of this machine, in the namespace of Linux that has no files: the name
// goes with the socket.
namespace heddle::cluster {

/// How long each end of a connection waits for a word of the other one.
constexpr int64_t kHostSocketPatienceMs = 2'000;

/// A socket that listens at `name`, or one that is connected to it; none when the system refuses, with errno.
Descriptor ListenOnHost(std::string_view name);
Descriptor ConnectOnHost(std::string_view name);
/// A caller, without waiting for one; none with errno when there is none (EAGAIN), or when the system has no
/// descriptor for it (the next look may succeed).
Descriptor AcceptOnHost(const Descriptor& listening);

/// Whether the process at the other end belongs to this user.
bool IsOfThisUser(const Descriptor& socket);

/// One packet; `descriptor` goes along unless it is -1. False when it did not get through.
bool SendPacket(const Descriptor& socket, std::string_view text, int descriptor = -1);
/// One packet, and what came along when that was one descriptor; all others are closed. False when the
/// other end has gone, or says nothing, or too much.
bool ReceivePacket(const Descriptor& socket, std::string* text, Descriptor* descriptor);

}  // namespace heddle::cluster
