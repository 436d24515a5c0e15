// SPDX-License-Identifier: Apache-2.0
#include "ops/io/checksums/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "core/status.h"

namespace heddle::ops {
namespace {

constexpr size_t kBlockBytes = 64;
constexpr size_t kLengthBytes = 8;
constexpr size_t kRounds = 64;

// FIPS 180-4, 4.2.2: the first 32 bits of the fractions of the cube roots of the first 64 primes.
constexpr std::array<uint32_t, kRounds> kRoundConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t ReadBigEndian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

class Hasher {
 public:
  void Add(std::string_view bytes) {
    length_ += bytes.size();
    while (!bytes.empty()) {
      const size_t taken = std::min(bytes.size(), kBlockBytes - filled_);
      std::memcpy(block_.data() + filled_, bytes.data(), taken);
      bytes.remove_prefix(taken);
      filled_ += taken;
      if (filled_ < kBlockBytes) return;
      Mix();
      filled_ = 0;
    }
  }

  Sha256Digest Finish() {
    const uint64_t bits = length_ * 8;
    Add(std::string_view("\x80", 1));
    while (filled_ != kBlockBytes - kLengthBytes) Add(std::string_view("\0", 1));
    for (size_t i = 0; i < kLengthBytes; ++i)
      block_[kBlockBytes - 1 - i] = static_cast<uint8_t>(bits >> (8 * i));
    Mix();
    Sha256Digest digest{};
    for (size_t i = 0; i < digest.size(); ++i)
      digest[i] = static_cast<uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
    return digest;
  }

 private:
  // FIPS 180-4, 6.2.2.
  void Mix() {
    std::array<uint32_t, kRounds> w{};
    for (size_t t = 0; t < 16; ++t) w[t] = ReadBigEndian(block_.data() + 4 * t);
    for (size_t t = 16; t < kRounds; ++t) {
      const uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
      const uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
      w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (size_t t = 0; t < kRounds; ++t) {
      const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRoundConstants[t] + w[t];
      const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g;
      g = f;
      f = e;
      e = d + t1;
      d = c;
      c = b;
      b = a;
      a = t1 + t2;
    }
    const std::array<uint32_t, 8> mixed = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < mixed.size(); ++i) state_[i] += mixed[i];
  }

  // The first 32 bits of the fractions of the square roots of the first 8 primes.
  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, kBlockBytes> block_{};
  size_t filled_ = 0;
  uint64_t length_ = 0;
};

std::string_view TextOf(const Sha256Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace

Sha256Digest Sha256(std::initializer_list<std::string_view> parts) {
  Hasher hasher;
  for (const std::string_view part : parts) hasher.Add(part);
  return hasher.Finish();
}

Sha256Digest HmacSha256(std::string_view secret, std::initializer_list<std::string_view> parts) {
  HEDDLE_CHECK(secret.size() <= kBlockBytes, "longer secrets would have to be hashed first");
  constexpr char kInner = 0x36, kOuter = 0x5c;
  std::string inner(kBlockBytes, kInner), outer(kBlockBytes, kOuter);
  for (size_t i = 0; i < secret.size(); ++i) {
    inner[i] = static_cast<char>(inner[i] ^ secret[i]);
    outer[i] = static_cast<char>(outer[i] ^ secret[i]);
  }
  Hasher hasher;
  hasher.Add(inner);
  for (const std::string_view part : parts) hasher.Add(part);
  const Sha256Digest digest = hasher.Finish();
  return Sha256({outer, TextOf(digest)});
}

}  // namespace heddle::ops
