// SPDX-License-Identifier: Apache-2.0
#include "ops/generate/philox.h"

#include <cmath>

#include "ops/simd/cellwise/precise_math.h"

namespace heddle::ops {
namespace {

constexpr int kRounds = 10;
constexpr uint64_t kMultiplier0 = 0xD2E7470EE14C6C93ULL;
constexpr uint64_t kMultiplier1 = 0xCA5A826395121157ULL;
constexpr uint64_t kWeyl0 = 0x9E3779B97F4A7C15ULL;
constexpr uint64_t kWeyl1 = 0xBB67AE8584CAA73BULL;

std::array<uint64_t, 4> Philox(uint64_t seed, uint64_t counter) {
  std::array<uint64_t, 4> words = {counter, 0, 0, 0};
  uint64_t key0 = seed, key1 = seed;
  for (int round = 0; round < kRounds; ++round) {
    const auto product0 = static_cast<unsigned __int128>(kMultiplier0) * words[0];
    const auto product1 = static_cast<unsigned __int128>(kMultiplier1) * words[2];
    words = {static_cast<uint64_t>(product1 >> 64) ^ words[1] ^ key0, static_cast<uint64_t>(product1),
             static_cast<uint64_t>(product0 >> 64) ^ words[3] ^ key1, static_cast<uint64_t>(product0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return words;
}

}  // namespace

double PhiloxStream::UniformAt(uint64_t k) {
  if (k / 4 != block_) {
    block_ = k / 4;
    words_ = Philox(seed_, block_);
  }
  return static_cast<double>(static_cast<int64_t>(words_[k % 4])) * 0x1p-64 + 0.5;
}

double PhiloxStream::NextUniform() { return UniformAt(at_++); }

double PhiloxStream::NextNormal() {
  constexpr double kPi = 3.141592653589793;
  const uint64_t pair = at_ / 2 * 2;
  const double radius = std::sqrt(-2 * PreciseLog(UniformAt(pair)));
  double sine, cosine;
  PreciseSineCosine(2 * kPi * UniformAt(pair + 1), &sine, &cosine);
  return radius * (at_++ == pair ? cosine : sine);
}

}  // namespace heddle::ops
