// SPDX-License-Identifier: Apache-2.0
#include "ops/formats/crc32c.h"

#include <nmmintrin.h>

#include <cstring>

namespace heddle::ops {

uint32_t Crc32c(std::string_view bytes, uint32_t before) {
  uint64_t crc = ~before;
  for (; bytes.size() >= sizeof(uint64_t); bytes.remove_prefix(sizeof(uint64_t))) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof(word));
    crc = _mm_crc32_u64(crc, word);
  }
  for (const char byte : bytes) crc = _mm_crc32_u8(static_cast<uint32_t>(crc), static_cast<uint8_t>(byte));
  return ~static_cast<uint32_t>(crc);
}

}  // namespace heddle::ops
