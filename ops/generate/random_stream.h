// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

// The random streams of rand(): the same numbers as Apache SystemDS draws (docs/numerics.md, section "rand").
namespace heddle::ops {

/// java.util.Random: a 48-bit linear congruential generator, documented in the Java class library's
/// specification.
class JavaRandom {
 public:
  explicit JavaRandom(int64_t seed) { SetSeed(seed); }
  void SetSeed(int64_t seed) { state_ = static_cast<uint64_t>(seed) ^ kMultiplier; }
  int32_t NextInt() { return static_cast<int32_t>(Next(32)); }
  /// Uniform in [0, bound), bound > 0.
  int32_t NextInt(int32_t bound);
  int64_t NextLong();
  /// Uniform in [0, bound), bound > 0, of 63 bits of NextLong(): not a function of java.util.Random, but how
  /// SystemDS samples with replacement.
  int64_t NextLong(int64_t bound);
  /// Uniform in [0, 1), a multiple of 2^-53; two steps of the generator.
  double NextDouble() {
    // The second step from the first state as well, so that a chain of doubles waits for one multiplication
    // each.
    const uint64_t first = state_ * kMultiplier + kIncrement;
    state_ = state_ * kMultiplier2 + kIncrement2;
    const uint64_t bits = (((first & kMask) >> 22) << 27) + ((state_ & kMask) >> 21);
    return static_cast<double>(static_cast<int64_t>(bits)) * 0x1.0p-53;
  }
  /// Skips `count` doubles in O(log count).
  void SkipDoubles(int64_t count);

 private:
  static constexpr uint64_t kMultiplier = 0x5DEECE66DULL;
  static constexpr uint64_t kIncrement = 0xB;
  static constexpr uint64_t kMultiplier2 = kMultiplier * kMultiplier;
  static constexpr uint64_t kIncrement2 = kMultiplier * kIncrement + kIncrement;
  static constexpr uint64_t kMask = (uint64_t{1} << 48) - 1;

  uint32_t Next(int bits) {
    state_ = state_ * kMultiplier + kIncrement;
    return static_cast<uint32_t>((state_ & kMask) >> (48 - bits));
  }

  uint64_t state_;  // Only the low 48 bits matter; the others are noise that never flows down.
};

/// WELL1024a (Panneton, L'Ecuyer, Matsumoto: Improved long-period generators based on linear recurrences
/// modulo 2, ACM TOMS 32, 2006), seeded and read out as Apache commons-math does.
class Well1024a {
 public:
  explicit Well1024a(const std::array<uint32_t, 32>& state) : state_(state) {}
  /// The two halves of `seed`, spread over the state by the recurrence of commons-math.
  explicit Well1024a(int64_t seed);
  uint32_t Next(int bits);
  int64_t NextLong();
  double NextDouble();    ///< Uniform in [0, 1), a multiple of 2^-52.
  double NextGaussian();  ///< Box-Muller; the second of a pair is kept for the next call.

 private:
  std::array<uint32_t, 32> state_;
  uint32_t index_ = 0;
  bool has_gaussian_ = false;
  double gaussian_ = 0;
};

/// One seed for each of the first `blocks` blocks of a matrix: java.util.Random(seed) fills a WELL1024a,
/// which draws them.
std::vector<int64_t> BlockSeeds(int64_t seed, int64_t blocks);

/// N(0,1): Box-Muller pairs over java.util.Random, u1 before u2, cosine before sine.
class NormalStream {
 public:
  explicit NormalStream(int64_t seed) : uniform_(seed) {}
  double Next();
  /// Skips `count` values in O(log count).
  void Skip(int64_t count);

 private:
  JavaRandom uniform_;
  bool has_second_ = false;
  double second_ = 0;
};

/// What does not change from sample to sample of a Poisson distribution.
class PoissonTable {
 public:
  explicit PoissonTable(double mean);  ///< mean > 0
  /// One sample. Means below 40: products of uniforms against exp(-mean); else rejection (Devroye, The
  /// computer generation of Poisson random variables, Computing 26, 1981), the fractional part added by the
  /// first way.
  double Sample(Well1024a& random) const;

 private:
  double SampleSmall(Well1024a& random, double mean, double limit) const;
  double SampleLarge(Well1024a& random) const;
  double LogFactorial(int64_t n) const;

  double mean_;
  double limit_ = 0;                 // exp(-mean) or, for large means, exp(-fraction)
  double whole_ = 0, fraction_ = 0;  // floor(mean) and the rest
  double log_whole_ = 0, log_whole_factorial_ = 0;
  double delta_ = 0, half_delta_ = 0, twice_ = 0, p1_ = 0, p2_ = 0, c1_ = 0;
  std::vector<double> log_factorials_;  // Sums of logs from 2 on, as far as samples are likely to go.
};

}  // namespace heddle::ops
