// SPDX-License-Identifier: Apache-2.0
#include "ops/generate/random_stream.h"

#include <algorithm>
#include <cmath>

#include "ops/simd/cellwise/precise_math.h"

namespace heddle::ops {
namespace {

constexpr double kPi = 3.141592653589793;

// q_i = sum of (ln 2)^j / j! for j = 1..i (Ahrens and Dieter 1972): thresholds of the exponential sampler.
// The powers and factorials are exact enough in a double to give the published doubles; the last is 1 or
// more.
std::vector<double> ExponentialThresholds() {
  std::vector<double> thresholds;
  const double log2 = PreciseLog(2);
  double sum = 0;
  double factorial = 1;
  for (int i = 1; sum < 1; ++i) {
    factorial *= i;
    long double power = 1;
    for (int j = 0; j < i; ++j) power *= log2;
    sum += static_cast<double>(power) / factorial;
    thresholds.push_back(sum);
  }
  return thresholds;
}

// Exp(1) as commons-math samples it.
double SampleExponential(Well1024a& random) {
  static const std::vector<double> kThresholds = ExponentialThresholds();
  double a = 0;
  double u = random.NextDouble();
  while (u < 0.5) {
    a += kThresholds[0];
    u *= 2;
  }
  u += u - 1;
  if (u <= kThresholds[0]) return a + u;
  double least = random.NextDouble();
  size_t i = 0;
  do {
    ++i;
    least = std::min(least, random.NextDouble());
  } while (u > kThresholds[i]);
  return a + least * kThresholds[0];
}

}  // namespace

void JavaRandom::SkipDoubles(int64_t count) {
  // x -> multiplier x + increment, composed with itself by squaring.
  uint64_t multiplier = kMultiplier2;
  uint64_t increment = kIncrement2;
  for (auto left = static_cast<uint64_t>(count); left > 0; left >>= 1) {
    if (left & 1) state_ = state_ * multiplier + increment;
    increment = multiplier * increment + increment;
    multiplier *= multiplier;
  }
}

int32_t JavaRandom::NextInt(int32_t bound) {
  auto bits = static_cast<int64_t>(Next(31));
  if ((bound & (bound - 1)) == 0) return static_cast<int32_t>((bound * bits) >> 31);
  // Numbers of the last, incomplete run of `bound` are drawn again.
  while (bits - bits % bound + (bound - 1) > INT32_MAX) bits = static_cast<int64_t>(Next(31));
  return static_cast<int32_t>(bits % bound);
}

int64_t JavaRandom::NextLong() {
  const uint64_t high = static_cast<uint64_t>(int64_t{NextInt()}) << 32;
  return static_cast<int64_t>(high + static_cast<uint64_t>(int64_t{NextInt()}));
}

int64_t JavaRandom::NextLong(int64_t bound) {
  while (true) {
    const auto bits = static_cast<int64_t>((static_cast<uint64_t>(NextLong()) << 1) >> 1);
    const int64_t value = bits % bound;
    if (static_cast<uint64_t>(bits - value) + static_cast<uint64_t>(bound - 1) <= INT64_MAX) return value;
  }
}

Well1024a::Well1024a(int64_t seed) {
  state_[0] = static_cast<uint32_t>(static_cast<uint64_t>(seed) >> 32);
  state_[1] = static_cast<uint32_t>(static_cast<uint64_t>(seed));
  for (size_t i = 2; i < state_.size(); ++i) {
    const int64_t l = static_cast<int32_t>(state_[i - 2]);
    state_[i] = static_cast<uint32_t>(1812433253ULL * static_cast<uint64_t>(l ^ (l >> 30)) + i);
  }
}

uint32_t Well1024a::Next(int bits) {
  const uint32_t before = (index_ + 31) & 31;
  const uint32_t v0 = state_[index_];
  const uint32_t v1 = state_[(index_ + 3) & 31];
  const uint32_t v2 = state_[(index_ + 24) & 31];
  const uint32_t v3 = state_[(index_ + 10) & 31];
  const uint32_t z0 = state_[before];
  const uint32_t z1 = v0 ^ v1 ^ (v1 >> 8);
  const uint32_t z2 = v2 ^ (v2 << 19) ^ v3 ^ (v3 << 14);
  state_[index_] = z1 ^ z2;
  state_[before] = z0 ^ (z0 << 11) ^ z1 ^ (z1 << 7) ^ z2 ^ (z2 << 13);
  index_ = before;
  return state_[before] >> (32 - bits);
}

int64_t Well1024a::NextLong() {
  const uint64_t high = Next(32);
  return static_cast<int64_t>(high << 32 | Next(32));
}

double Well1024a::NextDouble() {
  const uint64_t high = Next(26);
  return static_cast<double>(static_cast<int64_t>(high << 26 | Next(26))) * 0x1.0p-52;
}

double Well1024a::NextGaussian() {
  has_gaussian_ = !has_gaussian_;
  if (!has_gaussian_) return gaussian_;
  const double x = NextDouble();
  const double y = NextDouble();
  const double radius = std::sqrt(-2 * PreciseLog(y));
  double sine, cosine;
  PreciseSineCosine(2 * kPi * x, &sine, &cosine);
  gaussian_ = radius * sine;
  return radius * cosine;
}

std::vector<int64_t> BlockSeeds(int64_t seed, int64_t blocks) {
  JavaRandom random(seed);
  std::array<uint32_t, 32> state;
  for (uint32_t& word : state) word = static_cast<uint32_t>(random.NextInt());
  Well1024a well(state);
  std::vector<int64_t> seeds(static_cast<size_t>(blocks));
  for (int64_t& block_seed : seeds) block_seed = well.NextLong();
  return seeds;
}

double NormalStream::Next() {
  has_second_ = !has_second_;
  if (!has_second_) return second_;
  const double u1 = uniform_.NextDouble();
  const double u2 = uniform_.NextDouble();
  const double radius = std::sqrt(-2 * PreciseLog(u1));
  double sine, cosine;
  PreciseSineCosine(2 * kPi * u2, &sine, &cosine);
  second_ = radius * sine;
  return radius * cosine;
}

void NormalStream::Skip(int64_t count) {
  if (count > 0 && has_second_) {
    has_second_ = false;
    --count;
  }
  uniform_.SkipDoubles(count / 2 * 2);
  if (count % 2 != 0) Next();
}

PoissonTable::PoissonTable(double mean) : mean_(mean) {
  constexpr double kPivot = 40;
  if (mean < kPivot) {
    limit_ = PreciseExp(-mean);
    return;
  }
  whole_ = std::floor(mean);
  fraction_ = mean - whole_;
  limit_ = PreciseExp(-fraction_);
  const auto n = static_cast<size_t>(whole_ + 20 * std::sqrt(whole_) + 20);
  log_factorials_.resize(n + 1);
  for (size_t i = 2; i <= n; ++i)
    log_factorials_[i] = log_factorials_[i - 1] + PreciseLog(static_cast<double>(i));
  log_whole_ = PreciseLog(whole_);
  log_whole_factorial_ = LogFactorial(static_cast<int64_t>(whole_));
  delta_ = std::sqrt(whole_ * PreciseLog(32 * whole_ / kPi + 1));
  half_delta_ = delta_ / 2;
  twice_ = 2 * whole_ + delta_;
  const double a1 = std::sqrt(kPi * twice_) * PreciseExp(1 / (8 * whole_));
  const double a2 = twice_ / delta_ * PreciseExp(-delta_ * (1 + delta_) / twice_);
  const double sum = a1 + a2 + 1;
  p1_ = a1 / sum;
  p2_ = a2 / sum;
  c1_ = 1 / (8 * whole_);
}

double PoissonTable::LogFactorial(int64_t n) const {
  if (n < 2) return 0;
  if (n < 21) {
    double factorial = 1;
    for (int64_t i = 2; i <= n; ++i) factorial *= static_cast<double>(i);
    return PreciseLog(factorial);
  }
  const auto last = static_cast<int64_t>(log_factorials_.size()) - 1;
  double sum = log_factorials_[static_cast<size_t>(std::min(n, last))];
  for (int64_t i = last + 1; i <= n; ++i) sum += PreciseLog(static_cast<double>(i));
  return sum;
}

double PoissonTable::Sample(Well1024a& random) const {
  if (log_factorials_.empty()) return std::min(SampleSmall(random, mean_, limit_), 2147483647.0);
  return std::min(SampleLarge(random), 2147483647.0);
}

double PoissonTable::SampleSmall(Well1024a& random, double mean, double limit) const {
  int64_t n = 0;
  double product = 1;
  while (static_cast<double>(n) < 1000 * mean) {
    product *= random.NextDouble();
    if (!(product >= limit)) return static_cast<double>(n);
    ++n;
  }
  return static_cast<double>(n);
}

double PoissonTable::SampleLarge(Well1024a& random) const {
  const double more = fraction_ == 0 ? 0 : SampleSmall(random, fraction_, limit_);
  while (true) {
    double x, y, v;
    const double u = random.NextDouble();
    if (u <= p1_) {
      const double n = random.NextGaussian();
      x = n * std::sqrt(whole_ + half_delta_) - 0.5;
      if (x > delta_ || x < -whole_) continue;
      y = x < 0 ? std::floor(x) : std::ceil(x);
      const double e = SampleExponential(random);
      v = -e - (n * n / 2) + c1_;
    } else {
      if (u > p1_ + p2_) return more + whole_;
      x = delta_ + (twice_ / delta_) * SampleExponential(random);
      y = std::ceil(x);
      v = -SampleExponential(random) - delta_ * (x + 1) / twice_;
    }
    const double a = x < 0 ? 1 : 0;
    const double t = y * (y + 1) / (2 * whole_);
    if (v < -t && a == 0) return more + whole_ + y;
    const double qr = t * ((2 * y + 1) / (6 * whole_) - 1);
    const double qa = qr - (t * t) / (3 * (whole_ + a * (y + 1)));
    if (v < qa) return more + whole_ + y;
    if (v > qr) continue;
    if (v < y * log_whole_ - LogFactorial(static_cast<int64_t>(y + whole_)) + log_whole_factorial_)
      return more + whole_ + y;
  }
}

}  // namespace heddle::ops
