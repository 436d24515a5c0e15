// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace heddle::ops {

/// The other side of array_process.h, in a process of its own that does nothing else: opens the array that
/// the socket asks for and answers requests until its other end is closed. False when nobody asked.
bool ServeArray(int socket, int descriptor_of_file);

}  // namespace heddle::ops
