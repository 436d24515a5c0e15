// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace heddle {

/// Randomness of the system itself (job seeds, tokens, jitter) behind an interface, so that a simulation can
/// own it. The rand() of scripts is ops/generate, which reproduces a fixed generator bit for bit.
class RandomSource {
 public:
  virtual ~RandomSource() = default;
  virtual uint64_t Next() = 0;  ///< 64 uniform bits.

  /// Uniform in [0, bound), without bias; bound >= 1.
  uint64_t Below(uint64_t bound);
};

/// The operating system's generator (getrandom), fit for tokens. Lives for ever; thread-safe.
RandomSource& SystemRandom();

/// The same numbers for the same seed on every machine: xoshiro256** seeded by splitmix64 (Blackman and
/// Vigna, "Scrambled linear pseudorandom number generators", 2018). Not thread-safe, not for secrets.
class SeededRandom : public RandomSource {
 public:
  explicit SeededRandom(uint64_t seed);
  uint64_t Next() override;

 private:
  std::array<uint64_t, 4> state_;
};

}  // namespace heddle
