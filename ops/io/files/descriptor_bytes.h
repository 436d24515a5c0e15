// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "core/status.h"

namespace heddle::ops {

/// Reads the bytes [begin, begin + count) of an open file that had `size` bytes when it was opened; messages
/// call it `path`. kDataLoss when it has become shorter or cannot be read.
Status ReadBytesAt(int descriptor, const std::string& path, int64_t size, int64_t begin, int64_t count,
                   char* out);

}  // namespace heddle::ops
