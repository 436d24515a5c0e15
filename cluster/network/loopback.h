// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "core/environment/descriptor.h"

// TCP within this machine, without Heddle's protocols: for what measures or disturbs these.
namespace heddle::cluster {

inline sockaddr_in LoopbackAddress(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/// A socket that listens at any free port; none when the system refuses.
inline Descriptor ListenOnLoopback(int* port) {
  Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = LoopbackAddress(0);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener.get(), any, size) != 0 || listen(listener.get(), SOMAXCONN) != 0 ||
      getsockname(listener.get(), any, &size) != 0)
    return Descriptor();
  *port = ntohs(address.sin_port);
  return listener;
}

/// A connection to who listens at `port`; none when nobody does.
inline Descriptor ConnectToLoopback(int port) {
  Descriptor connected(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = LoopbackAddress(port);
  if (connect(connected.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return Descriptor();
  return connected;
}

}  // namespace heddle::cluster
