// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace heddle::ops {

/// The number in bytes [begin, begin + count), the lowest first; at most eight, all of which are there.
inline uint64_t LittleEndian(std::string_view bytes, size_t begin, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) value |= uint64_t{static_cast<uint8_t>(bytes[begin + i])} << (8 * i);
  return value;
}

}  // namespace heddle::ops
