// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/cellwise/precise_math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace heddle::ops {
namespace {

// The unevaluated sum high + low, |low| <= ulp(high) / 2 (Dekker 1971; fma versions: Joldes, Muller, Popescu
// 2017).
struct Pair {
  double high;
  double low;
};

Pair QuickSum(double a, double b) {  // |a| >= |b|
  const double s = a + b;
  return {s, b - (s - a)};
}
Pair Sum(double a, double b) {
  const double s = a + b;
  const double v = s - a;
  return {s, (a - (s - v)) + (b - v)};
}
Pair Product(double a, double b) {
  const double p = a * b;
  return {p, std::fma(a, b, -p)};
}
Pair operator+(Pair a, Pair b) {
  const Pair high = Sum(a.high, b.high);
  const Pair low = Sum(a.low, b.low);
  const Pair first = QuickSum(high.high, high.low + low.high);
  return QuickSum(first.high, low.low + first.low);
}
Pair operator*(Pair a, Pair b) {
  Pair p = Product(a.high, b.high);
  p.low += a.high * b.low + a.low * b.high;
  return QuickSum(p.high, p.low);
}
Pair Quotient(Pair a, Pair b) {
  const double q = a.high / b.high;
  const double rest = std::fma(-q, b.high, a.high) + (a.low - q * b.low);
  return QuickSum(q, rest / b.high);
}
Pair Inverse(double n) { return Quotient({1, 0}, {n, 0}); }

constexpr Pair kLog2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
constexpr Pair kHalfPi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
constexpr double kHalfPiLowest = -0x1.f1976b7ed8fbcp-110;

const Pair kThird = Inverse(3), kFifth = Inverse(5), kSeventh = Inverse(7);
const Pair kSine[] = {Inverse(-6), Inverse(120), Inverse(-5040)};
const Pair kCosine[] = {{-0.5, 0}, Inverse(24), Inverse(-720), Inverse(40320)};

// log of 2^exponent m, m in [sqrt(1/2), sqrt(2)): log m = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.172.
Pair LogPair(double exponent, double m) {
  const Pair s = Quotient({m - 1, 0}, Sum(m, 1));
  const Pair s2 = s * s;
  const double t = s2.high;
  double tail = 1.0 / 29;
  for (int k = 27; k >= 9; k -= 2) tail = std::fma(tail, t, 1.0 / k);
  const Pair inner = Pair{t * tail, 0} + kSeventh;
  const Pair sum = ((inner * s2 + kFifth) * s2 + kThird) * s2;
  const Pair series = s + s * sum;
  Pair scaled = Product(exponent, kLog2.high);
  scaled.low += exponent * kLog2.low;
  scaled = QuickSum(scaled.high, scaled.low);
  return scaled + Pair{2 * series.high, 2 * series.low};
}

// sin and cos of r, |r| <= pi/4: Taylor, the first terms in pairs, the rest in doubles.
void SineCosinePair(Pair r, Pair* sine, Pair* cosine) {
  const Pair r2 = r * r;
  const double t = r2.high;
  double tail = -1.0 / 25852016738884976640000.0;  // 1/23!
  tail = std::fma(tail, t, 1.0 / 51090942171709440000.0);
  tail = std::fma(tail, t, -1.0 / 121645100408832000.0);
  tail = std::fma(tail, t, 1.0 / 355687428096000.0);
  tail = std::fma(tail, t, -1.0 / 1307674368000.0);
  tail = std::fma(tail, t, 1.0 / 6227020800.0);
  tail = std::fma(tail, t, -1.0 / 39916800.0);
  tail = std::fma(tail, t, 1.0 / 362880.0);
  Pair sum = (((Pair{t * tail, 0} + kSine[2]) * r2 + kSine[1]) * r2 + kSine[0]) * r2;
  *sine = r + r * sum;

  tail = 1.0 / 620448401733239439360000.0;  // 1/24!
  tail = std::fma(tail, t, -1.0 / 1124000727777607680000.0);
  tail = std::fma(tail, t, 1.0 / 2432902008176640000.0);
  tail = std::fma(tail, t, -1.0 / 6402373705728000.0);
  tail = std::fma(tail, t, 1.0 / 20922789888000.0);
  tail = std::fma(tail, t, -1.0 / 87178291200.0);
  tail = std::fma(tail, t, 1.0 / 479001600.0);
  tail = std::fma(tail, t, -1.0 / 3628800.0);
  sum = ((((Pair{t * tail, 0} + kCosine[3]) * r2 + kCosine[2]) * r2 + kCosine[1]) * r2 + kCosine[0]) * r2;
  *cosine = Pair{1, 0} + sum;
}

// x - k step, |k step - x| small, to twice the precision of a double.
Pair Reduce(double x, double k, Pair step, double step_lowest) {
  const Pair multiple = Product(k, step.high);
  const Pair low = Product(k, step.low);
  return Sum(x - multiple.high, -multiple.low) + Pair{-low.high, -low.low} + Pair{-k * step_lowest, 0};
}

// What the quick ways look up: a function of the index alone, computed once in pairs.
constexpr int kLogSteps = 128;
constexpr int kAngleSteps = 256;  // Of a quarter turn.
struct Tables {
  struct LogEntry {
    double inverse;  // About 1 / (middle of the interval).
    Pair log;        // -log(inverse)
  };
  struct AngleEntry {
    Pair sine, cosine;
  };
  LogEntry log[kLogSteps];
  AngleEntry angle[kAngleSteps];

  Tables() {
    for (uint64_t i = 0; i < kLogSteps; ++i) {
      const double middle = std::bit_cast<double>(kLowestMantissa + (i << 45) + (uint64_t{1} << 44));
      log[i].inverse = 1 / middle;
      const double m = log[i].inverse;
      const Pair l = m < 1.4142135623730951 && m >= 0.7071067811865476
                         ? LogPair(0, m)
                         : LogPair(m > 1 ? 1 : -1, m > 1 ? m / 2 : m * 2);
      log[i].log = {-l.high, -l.low};
    }
    for (int i = 0; i < kAngleSteps; ++i) {
      const bool far = i > kAngleSteps / 2;
      const double k = static_cast<double>(far ? kAngleSteps - i : i) / kAngleSteps;
      Pair s, c;
      SineCosinePair(Product(k, kHalfPi.high) + Pair{k * kHalfPi.low, 0}, &s, &c);
      angle[i] = far ? AngleEntry{c, s} : AngleEntry{s, c};
    }
  }
  static constexpr uint64_t kLowestMantissa = 0x3fe6a09e667f3bcdULL;  // sqrt(1/2)
};
const Tables kTables;

// The double nearest to high + low when an error of `bound` in it cannot change that (Ziv's test).
bool RoundsSafely(double high, double low, double bound, double* result) {
  *result = high + (low + bound);
  return *result == high + (low - bound);
}

// About 2^-69 from log(2^exponent m). Not for results near 0.
bool QuickLog(double exponent, double m, uint64_t index, double* result) {
  const Tables::LogEntry& entry = kTables.log[index];
  const Pair product = Product(m, entry.inverse);
  const Pair r = QuickSum(product.high - 1, product.low);  // |r| < 2^-7.9; log(1 + r) follows.
  const double x = r.high;
  double tail = 1.0 / 9;
  tail = std::fma(tail, x, -1.0 / 8);
  tail = std::fma(tail, x, 1.0 / 7);
  tail = std::fma(tail, x, -1.0 / 6);
  tail = std::fma(tail, x, 1.0 / 5);
  tail = std::fma(tail, x, -1.0 / 4);
  tail = std::fma(tail, x, 1.0 / 3);
  const double x2 = x * x;
  constexpr double kLog2High = 0x1.62e42fefa3800p-1,
                   kLog2Low = 0x1.ef35793c76730p-45;  // exponent * high is exact.
  const Pair first = Sum(exponent * kLog2High, entry.log.high);
  const Pair second = Sum(first.high, x);
  const double small = first.low + second.low + (r.low + entry.log.low + exponent * kLog2Low);
  const double low = small + (std::fma(x2 * x, tail, -0.5 * x2) - x * r.low);
  return std::abs(second.high) > 0x1p-5 && RoundsSafely(second.high, low, 0x1p-67, result);
}

// About 2^-69 from sine + cosine * r - ..., the sine of (entry's angle + r), |r| < 2^-8.3. Not for results
// near 0.
bool QuickTurn(Pair sine, Pair cosine, Pair r, double sine_minus_r, double cosine_minus_1, double* result) {
  const Pair turn = Product(cosine.high, r.high);
  const Pair first = Sum(sine.high, turn.high);
  const double low = (first.low + turn.low) + (sine.low + std::fma(cosine.low, r.high, cosine.high * r.low)) +
                     std::fma(sine.high, cosine_minus_1, cosine.high * sine_minus_r);
  return std::abs(first.high) > 0x1p-5 && RoundsSafely(first.high, low, 0x1p-67, result);
}

void Quadrant(int quadrant, double s, double c, double* sine, double* cosine) {
  switch (quadrant & 3) {
    case 0:
      *sine = s;
      *cosine = c;
      break;
    case 1:
      *sine = c;
      *cosine = -s;
      break;
    case 2:
      *sine = -s;
      *cosine = -c;
      break;
    default:
      *sine = -c;
      *cosine = s;
      break;
  }
}

}  // namespace

double PreciseLog(double x) {
  if (!(x > 0))
    return x == 0 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  if (x == 1) return 0.0;
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const uint64_t above = bits - Tables::kLowestMantissa;
  const int64_t exponent = static_cast<int64_t>(above & 0xfff0000000000000ULL) >> 52;
  const double m = std::bit_cast<double>(bits - (static_cast<uint64_t>(exponent) << 52));
  const auto e = static_cast<double>(exponent);
  double result;
  if (QuickLog(e, m, above >> 45 & (kLogSteps - 1), &result)) return result;
  return LogPair(e, m).high;
}

void PreciseSineCosine(double x, double* sine, double* cosine) {
  constexpr double kStepsPerRadian = kAngleSteps * 0.6366197723675814;
  const double k = std::nearbyint(x * kStepsPerRadian);
  const auto step = static_cast<int>(k);
  const Tables::AngleEntry& entry = kTables.angle[step & (kAngleSteps - 1)];
  constexpr Pair kStep = {kHalfPi.high / kAngleSteps, kHalfPi.low / kAngleSteps};
  const Pair multiple = Product(k, kStep.high);
  const Pair r = QuickSum(x - multiple.high, -std::fma(k, kStep.low, multiple.low));
  const double t = r.high * r.high;
  const double sine_minus_r = r.high * t * std::fma(t, std::fma(t, -1.0 / 5040, 1.0 / 120), -1.0 / 6);
  const double cosine_minus_1 =
      std::fma(t * t, std::fma(t, std::fma(t, 1.0 / 40320, -1.0 / 720), 1.0 / 24), -0.5 * t) - r.high * r.low;
  const Pair minus_sine = {-entry.sine.high, -entry.sine.low};
  double s, c;
  if (QuickTurn(entry.sine, entry.cosine, r, sine_minus_r, cosine_minus_1, &s) &&
      QuickTurn(entry.cosine, minus_sine, r, sine_minus_r, cosine_minus_1, &c)) {
    Quadrant(step / kAngleSteps, s, c, sine, cosine);
    return;
  }
  const double quarter = std::nearbyint(x * 0.6366197723675814);
  Pair slow_sine, slow_cosine;
  SineCosinePair(Reduce(x, quarter, kHalfPi, kHalfPiLowest), &slow_sine, &slow_cosine);
  Quadrant(static_cast<int>(quarter), slow_sine.high, slow_cosine.high, sine, cosine);
}

// x = k log 2 + r; Taylor in pairs throughout: this one is called once per matrix.
double PreciseExp(double x) {
  const double k = std::nearbyint(x / kLog2.high);
  const Pair multiple = Product(k, kLog2.high);
  const Pair low = Product(k, kLog2.low);
  const Pair r = Sum(x - multiple.high, -multiple.low) + Pair{-low.high, -low.low};
  Pair sum = {1, 0};
  for (int n = 26; n >= 1; --n) sum = sum * r * Inverse(n) + Pair{1, 0};
  return std::ldexp(sum.high, static_cast<int>(k));
}

}  // namespace heddle::ops
