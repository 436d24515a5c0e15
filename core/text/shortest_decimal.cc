// SPDX-License-Identifier: Apache-2.0
#include "core/text/shortest_decimal.h"

#include <array>
#include <bit>
#include <cstddef>

namespace heddle {
namespace {

using Wide = unsigned __int128;

constexpr int kLeastPower = -292, kGreatestPower = 324;

// A whole number of many bits, for the table below.
class LongNumber {
 public:
  constexpr explicit LongNumber(int power_of_two) { words_[static_cast<size_t>(power_of_two / 32)] = 1U; }
  constexpr void MultiplyBy10() {
    uint64_t carry = 0;
    for (uint32_t& word : words_) {
      carry += uint64_t{word} * 10;
      word = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
  }
  // Without what is behind the point: so the floor of a quotient is that of the whole chain of quotients.
  constexpr void DivideBy10() {
    uint64_t rest = 0;
    for (size_t i = words_.size(); i-- > 0;) {
      rest = rest << 32 | words_[i];
      words_[i] = static_cast<uint32_t>(rest / 10);
      rest %= 10;
    }
  }
  // Its 128 highest bits from the first that is set on; `exact`: no bit behind them is.
  constexpr Wide Top(bool* exact) const {
    size_t i = words_.size();
    while (words_[i - 1] == 0) --i;
    const int shift = std::countl_zero(words_[i - 1]);
    Wide top = 0;
    for (size_t k = 0; k < 4; ++k) top = top << 32 | (i > k ? words_[i - 1 - k] : 0U);
    const uint32_t next = i > 4 ? words_[i - 5] : 0U;
    if (shift > 0) top = top << shift | next >> (32 - shift);
    *exact = static_cast<uint32_t>(uint64_t{next} << shift) == 0;
    for (size_t k = 5; k < i; ++k) *exact = *exact && words_[i - 1 - k] == 0;
    return top;
  }

 private:
  std::array<uint32_t, 64> words_ = {};
};

struct Power {
  uint64_t high = 0;
  uint64_t low = 0;
};

// The 128 highest bits of 10^k, rounded up.
constexpr auto MakePowers() {
  std::array<Power, kGreatestPower - kLeastPower + 1> powers = {};
  const auto put = [&](int k, const LongNumber& number, bool always_up) {
    bool exact = false;
    Wide top = number.Top(&exact);
    if (always_up || !exact) ++top;
    powers[static_cast<size_t>(k - kLeastPower)] = {static_cast<uint64_t>(top >> 64),
                                                    static_cast<uint64_t>(top)};
  };
  LongNumber power(0), reciprocal(2016);
  for (int k = 0; k <= kGreatestPower; ++k, power.MultiplyBy10()) put(k, power, false);
  for (int k = -1; k >= kLeastPower; --k) {
    reciprocal.DivideBy10();
    put(k, reciprocal, true);
  }
  return powers;
}
constexpr auto kPowers = MakePowers();

// Floors of log10(2^e), of log10(3/4 2^e) and of log2(10^e), for all exponents of doubles.
int FloorLog10OfPower2(int e) { return (e * 1262611) >> 22; }
int FloorLog10OfThreeQuarters(int e) { return (e * 1262611 - 524031) >> 22; }
int FloorLog2OfPower10(int e) { return (e * 1741647) >> 19; }

// The product over 2^128; its last bit is also set where bits behind it are.
uint64_t RoundToOdd(const Power& power, uint64_t x) {
  const Wide low = Wide{power.low} * x;
  const Wide high = Wide{power.high} * x + static_cast<uint64_t>(low >> 64);
  return static_cast<uint64_t>(high >> 64) | static_cast<uint64_t>(static_cast<uint64_t>(high) > 1);
}

}  // namespace

// x = c * 2^q. All numbers between (4c - 2) 2^(q-2) and (4c + 2) 2^(q-2) are read as x, the bounds, too,
// where c is even; the lower one is (4c - 1) where a smaller exponent begins below x. They are looked at in
// units of 10^k / 4, where k is such that the interval holds at least one multiple of 10^k, and one of
// 10^(k+1) at most.
Decimal ShortestDecimal(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  const uint64_t fraction = bits & 0xfffffffffffffULL;
  const auto biased = static_cast<int>(bits >> 52);
  const uint64_t c = biased == 0 ? fraction : fraction | uint64_t{1} << 52;
  const int q = (biased == 0 ? 1 : biased) - 1075;
  const uint64_t is_odd = c & 1;
  const bool is_close_below = fraction == 0 && biased > 1;
  const int k = is_close_below ? FloorLog10OfThreeQuarters(q) : FloorLog10OfPower2(q);
  const int shift = q + FloorLog2OfPower10(-k) + 1;
  const Power& power = kPowers[static_cast<size_t>(-k - kLeastPower)];
  const uint64_t lower =
      RoundToOdd(power, (4 * c - 2 + static_cast<uint64_t>(is_close_below)) << shift) + is_odd;
  const uint64_t middle = RoundToOdd(power, (4 * c) << shift);
  const uint64_t upper = RoundToOdd(power, (4 * c + 2) << shift) - is_odd;
  const uint64_t s = middle / 4;
  if (s >= 10) {
    const uint64_t shorter = s / 10;
    const bool below = lower <= 40 * shorter, above = 40 * shorter + 40 <= upper;
    if (below != above) return {shorter + static_cast<uint64_t>(above), k + 1};
  }
  const bool below = lower <= 4 * s, above = 4 * s + 4 <= upper;
  if (below != above) return {s + static_cast<uint64_t>(above), k};
  const uint64_t half = 4 * s + 2;
  const bool up = middle > half || (middle == half && (s & 1) != 0);
  return {s + static_cast<uint64_t>(up), k};
}

}  // namespace heddle
