// SPDX-License-Identifier: Apache-2.0
#include "ops/io/checksums/crc32c.h"

#include <nmmintrin.h>

#include <array>
#include <cstring>

namespace heddle::ops {
namespace {

// The processor makes a checksum of eight bytes in three cycles, but begins one in each: three parts of the
// bytes are summed side by side, and put together.
constexpr size_t kPartBytes = 4096;

// What becomes of a checksum when as many zero bytes follow: for each of its bytes, the share of each value.
using ZerosTable = std::array<std::array<uint32_t, 256>, 4>;

// A linear map of checksums: the image of each bit.
using BitImages = std::array<uint32_t, 32>;

constexpr uint32_t Image(const BitImages& images, uint32_t crc) {
  uint32_t result = 0;
  for (size_t bit = 0; bit < 32; ++bit)
    if ((crc >> bit & 1) != 0) result ^= images[bit];
  return result;
}

constexpr ZerosTable MakeZerosTable() {
  constexpr uint32_t kPolynomial = 0x82f63b78;  // Castagnoli's, the lowest power in the highest bit.
  BitImages images = {kPolynomial};             // Of one zero bit.
  for (size_t bit = 1; bit < 32; ++bit) images[bit] = uint32_t{1} << (bit - 1);
  for (size_t bits = 1; bits < 8 * kPartBytes; bits *= 2) {
    BitImages twice = {};
    for (size_t bit = 0; bit < 32; ++bit) twice[bit] = Image(images, images[bit]);
    images = twice;
  }
  ZerosTable table = {};
  for (size_t byte = 0; byte < 4; ++byte)
    for (uint32_t value = 0; value < 256; ++value) table[byte][value] = Image(images, value << (8 * byte));
  return table;
}
constexpr ZerosTable kZeros = MakeZerosTable();

uint64_t WithZeros(uint64_t crc) {
  return kZeros[0][crc & 255] ^ kZeros[1][crc >> 8 & 255] ^ kZeros[2][crc >> 16 & 255] ^
         kZeros[3][crc >> 24 & 255];
}

uint64_t WordAt(const char* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

}  // namespace

uint32_t Crc32c(std::string_view bytes, uint32_t before) {
  uint64_t crc = static_cast<uint32_t>(~before);
  for (; bytes.size() >= 3 * kPartBytes; bytes.remove_prefix(3 * kPartBytes)) {
    const char* const at = bytes.data();
    uint64_t second = 0, third = 0;
    for (size_t i = 0; i < kPartBytes; i += sizeof(uint64_t)) {
      crc = _mm_crc32_u64(crc, WordAt(at + i));
      second = _mm_crc32_u64(second, WordAt(at + kPartBytes + i));
      third = _mm_crc32_u64(third, WordAt(at + 2 * kPartBytes + i));
    }
    crc = WithZeros(WithZeros(crc) ^ second) ^ third;
  }
  for (; bytes.size() >= sizeof(uint64_t); bytes.remove_prefix(sizeof(uint64_t)))
    crc = _mm_crc32_u64(crc, WordAt(bytes.data()));
  for (const char byte : bytes) crc = _mm_crc32_u8(static_cast<uint32_t>(crc), static_cast<uint8_t>(byte));
  return ~static_cast<uint32_t>(crc);
}

}  // namespace heddle::ops
