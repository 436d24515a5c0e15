// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace heddle {

/// Sends all bytes. False when the other end is gone, or when the socket has a limit of time
/// (SO_SNDTIMEO) and nothing was taken within it. A signal does not end it, and none is raised.
bool SendAll(int socket, std::string_view bytes);

/// Waits for `size` bytes. False when the other end is gone before they are there.
bool ReceiveAll(int socket, void* bytes, size_t size);

}  // namespace heddle
