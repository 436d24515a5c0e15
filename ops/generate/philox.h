// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

// The counter-based streams of rand(): any value of a stream can be made alone.
namespace heddle::ops {

/// Philox4x64-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3, SC 2011) with both
/// words of the key equal to the seed, read out as SystemDS does: value k is a word of block k / 4.
class PhiloxStream {
 public:
  explicit PhiloxStream(int64_t seed) : seed_(static_cast<uint64_t>(seed)) {}
  double NextUniform();  ///< Uniform in [0, 1].
  double NextNormal();   ///< N(0,1): Box-Muller on pairs, cosine before sine. Not mixed with NextUniform().
  void Skip(int64_t count) { at_ += static_cast<uint64_t>(count); }

 private:
  double UniformAt(uint64_t k);

  uint64_t seed_;
  uint64_t at_ = 0;
  uint64_t block_ = ~uint64_t{0};  // Of `words_`.
  std::array<uint64_t, 4> words_{};
};

}  // namespace heddle::ops
