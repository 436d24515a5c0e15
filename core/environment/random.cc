// SPDX-License-Identifier: Apache-2.0
#include "core/environment/random.h"

#include <errno.h>
#include <sys/random.h>

#include "core/status.h"

namespace heddle {
namespace {

class OperatingSystemRandom : public RandomSource {
 public:
  uint64_t Next() override {
    uint64_t bits = 0;
    ssize_t got;
    do {
      got = getrandom(&bits, sizeof(bits), 0);
    } while (got < 0 && errno == EINTR);
    HEDDLE_CHECK(got == static_cast<ssize_t>(sizeof(bits)), "getrandom gives up to 256 bytes at once");
    return bits;
  }
};

constexpr uint64_t RotateLeft(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

}  // namespace

uint64_t RandomSource::Below(uint64_t bound) {
  HEDDLE_CHECK(bound >= 1, "an empty range has no member");
  const uint64_t unfair =
      (0 - bound) % bound;  // 2^64 mod bound: the first so many values would come up once too often.
  uint64_t bits;
  do {
    bits = Next();
  } while (bits < unfair);
  return bits % bound;
}

RandomSource& SystemRandom() {
  static OperatingSystemRandom* random = new OperatingSystemRandom;
  return *random;
}

SeededRandom::SeededRandom(uint64_t seed) {
  for (uint64_t& word : state_) {
    seed += 0x9e3779b97f4a7c15;
    uint64_t z = seed;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    word = z ^ z >> 31;
  }
}

uint64_t SeededRandom::Next() {
  const uint64_t result = RotateLeft(state_[1] * 5, 7) * 9;
  const uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = RotateLeft(state_[3], 45);
  return result;
}

}  // namespace heddle
