// SPDX-License-Identifier: Apache-2.0
#include "core/text/double_text.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <span>

#include "core/text/shortest_decimal.h"

namespace heddle {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

constexpr uint64_t kZeros = 0x3030303030303030ULL;

// The eight digits of each of two numbers below 10^8, the first in the lowest byte: cut in halves, each of
// them in halves, and again, side by side.
struct EightAndEight {
  uint64_t high = 0;
  uint64_t low = 0;
};
[[gnu::always_inline]] inline EightAndEight SixteenDigits(uint64_t high, uint64_t low) {
  const __m128i x = _mm_set_epi64x(static_cast<int64_t>(low), static_cast<int64_t>(high));
  const __m128i ten_thousands = _mm_srli_epi64(_mm_mul_epu32(x, _mm_set1_epi64x(3518437209)), 45);
  const __m128i rest = _mm_sub_epi32(x, _mm_mul_epu32(ten_thousands, _mm_set1_epi64x(10000)));
  const __m128i fours = _mm_or_si128(ten_thousands, _mm_slli_epi64(rest, 32));
  const __m128i hundreds = _mm_srli_epi16(_mm_mulhi_epu16(fours, _mm_set1_epi16(5243)), 3);
  const __m128i below_100 = _mm_sub_epi16(fours, _mm_mullo_epi16(hundreds, _mm_set1_epi16(100)));
  const __m128i twos = _mm_or_si128(hundreds, _mm_slli_epi32(below_100, 16));
  const __m128i tens = _mm_srli_epi16(_mm_mullo_epi16(twos, _mm_set1_epi16(103)), 10);
  const __m128i below_10 = _mm_sub_epi16(twos, _mm_mullo_epi16(tens, _mm_set1_epi16(10)));
  const __m128i digits = _mm_or_si128(tens, _mm_slli_epi16(below_10, 8));
  return {static_cast<uint64_t>(_mm_cvtsi128_si64(digits)),
          static_cast<uint64_t>(_mm_extract_epi64(digits, 1))};
}

void Put(char* out, uint64_t eight) { std::memcpy(out, &eight, sizeof(eight)); }

// Writes a whole number below 10^8; where it ends.
char* WriteWhole(uint64_t x, char* out) {
  const uint64_t digits = SixteenDigits(x, 0).high;
  const int zeros = x == 0 ? 7 : std::countr_zero(digits) / 8;
  Put(out, (digits | kZeros) >> (8 * zeros));
  return out + 8 - zeros;
}

// What needs no search for digits; true if that was all. Inline, so that x and out stay in registers.
[[gnu::always_inline]] inline bool WriteSimple(double* x, char** out) {
  if (std::isnan(*x)) {
    std::memcpy(*out, "NaN", 3);
    *out += 3;
    return true;
  }
  if (std::signbit(*x)) *(*out)++ = '-';
  *x = std::abs(*x);
  if (std::isinf(*x)) {
    std::memcpy(*out, "Infinity", 8);
    *out += 8;
    return true;
  }
  if (*x >= 1e7 || *x != std::floor(*x)) return false;
  *out = WriteWhole(static_cast<uint64_t>(*x), *out);  // Small whole numbers are most of what is printed.
  std::memcpy(*out, ".0", 2);
  *out += 2;
  return true;
}

constexpr int kMostDigits = 17;

// The digits d1 d2 ... dn of d1.d2...dn * 10^exponent, and zeros behind them up to the 17th: the first, eight
// and eight, as characters.
struct Digits {
  char first = '0';
  uint64_t high = kZeros;
  uint64_t low = kZeros;
  int count = 0;
  int exponent = 0;
};

// Lays them out by Java's rules. Inline for the same reason.
[[gnu::always_inline]] inline char* WriteLayout(const Digits& digits, char* out) {
  const int exponent = digits.exponent;
  if (exponent >= 7 || exponent < -3) {
    out[0] = digits.first;
    out[1] = '.';
    Put(out + 2, digits.high);
    Put(out + 10, digits.low);
    out += 1 + std::max(digits.count, 2);
    *out++ = 'E';
    if (exponent < 0) *out++ = '-';
    return WriteWhole(static_cast<uint64_t>(std::abs(exponent)), out);
  }
  if (exponent < 0) {
    std::memcpy(out, "0.00", 4);
    out += 1 - exponent;
    *out = digits.first;
    Put(out + 1, digits.high);
    Put(out + 9, digits.low);
    return out + digits.count;
  }
  out[0] = digits.first;
  Put(out + 1, digits.high);
  out[exponent + 1] = '.';
  Put(out + exponent + 2, digits.high >> (8 * exponent));
  Put(out + 10, digits.low);
  return out + std::max(digits.count, exponent + 2) + 1;
}

// How many bytes WriteLayout() writes.
int LengthOfLayout(int count, int exponent) {
  if (exponent >= 7 || exponent < -3) {
    const int size = std::abs(exponent);
    return 1 + std::max(count, 2) + 1 + (exponent < 0) + 1 + (size >= 10) + (size >= 100);
  }
  return exponent < 0 ? 1 - exponent + count : std::max(count, exponent + 2) + 1;
}

// Inline for the same reason.
[[gnu::always_inline]] inline Digits DigitsOf(const Decimal& decimal) {
  auto [digits, exponent] = decimal;
  constexpr uint64_t kFirst = 10'000'000'000'000'000;  // The value of the first of 17 digits.
  for (; digits < kFirst / 10; digits *= 10) --exponent;
  // Mostly there are 16 or 17, by chance.
  const bool lacks_one = digits < kFirst;
  digits *= lacks_one ? 10 : 1;
  exponent -= static_cast<int>(lacks_one);
  const uint64_t behind = digits % kFirst;
  const auto [high, low] = SixteenDigits(behind / 100'000'000, behind % 100'000'000);
  return {.first = static_cast<char>('0' + digits / kFirst),
          .high = high | kZeros,
          .low = low | kZeros,
          .count = kMostDigits - (low != 0 ? std::countl_zero(low) : 64 + std::countl_zero(high)) / 8,
          .exponent = exponent + kMostDigits - 1};
}

// Of what std::to_chars writes in scientific form.
Digits DigitsIn(std::string_view scientific) {
  Digits result;
  const size_t e = scientific.find('e');
  std::string text;
  for (const char c : scientific.substr(0, e))
    if (c != '.') text.push_back(c);
  result.count = static_cast<int>(text.size());
  text.resize(kMostDigits, '0');
  result.first = text[0];
  std::memcpy(&result.high, text.data() + 1, sizeof(result.high));
  std::memcpy(&result.low, text.data() + 9, sizeof(result.low));
  const char* const exponent = scientific.data() + e + (scientific[e + 1] == '+' ? 2 : 1);
  std::from_chars(exponent, scientific.data() + scientific.size(), result.exponent);
  return result;
}

template <typename T, typename... Precision>
std::string_view ToScientific(T x, std::span<char> text, Precision... precision) {
  char* const end = text.data() + text.size();
  const char* const written =
      std::to_chars(text.data(), end, x, std::chars_format::scientific, precision...).ptr;
  return {text.data(), static_cast<size_t>(written - text.data())};
}

// Below this Java takes the best two digits where one is enough, which differs only for the few lowest
// subnormals (4.9E-324).
constexpr double kTwoDigitsBelow = 1e-320;

Digits TinyDigitsOf(double x) {
  char text[40], two[40];
  const std::string_view shortest = ToScientific(x, text);
  if (shortest[1] == '.') return DigitsIn(shortest);
  const std::string_view best = ToScientific(x, two, 1);
  double back = 0;
  std::from_chars(best.data(), best.data() + best.size(), back);
  return DigitsIn(back == x && best[2] != '0' ? best : shortest);
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.front()) <= ' ') text.remove_prefix(1);
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
  return text;
}

// A positive hexadecimal number behind its "0x": Java demands the binary exponent.
std::optional<double> ParseHexadecimal(std::string_view text) {
  if (text.empty() || text.front() == '+' || text.front() == '-') return std::nullopt;
  if (text.find_first_of("pP") == std::string_view::npos) return std::nullopt;
  const std::string terminated = "0x" + std::string(text);
  char* end = nullptr;
  const double value = std::strtod(terminated.c_str(), &end);  // The process stays in the "C" locale.
  if (end != terminated.c_str() + terminated.size()) return std::nullopt;
  return value;
}

}  // namespace

char* WriteDouble(double x, char* out) {
  if (WriteSimple(&x, &out)) return out;
  return WriteLayout(x < kTwoDigitsBelow ? TinyDigitsOf(x) : DigitsOf(ShortestDecimal(x)), out);
}

char* WriteSingle(float x, char* out) {
  auto wide = static_cast<double>(x);
  if (WriteSimple(&wide, &out)) return out;
  char text[40];
  return WriteLayout(DigitsIn(ToScientific(std::abs(x), text)), out);
}

int64_t LengthOfDouble(double x) {
  char text[kNumberRoom];
  char* end = text;
  if (WriteSimple(&x, &end)) return end - text;
  const int64_t sign = end - text;
  if (x < kTwoDigitsBelow) {
    const Digits digits = TinyDigitsOf(x);
    return sign + LengthOfLayout(digits.count, digits.exponent);
  }
  const Decimal decimal = ShortestDecimal(x);
  constexpr uint64_t kFifteenDigits = 100'000'000'000'000;
  if (decimal.digits % 10 != 0 && decimal.digits >= kFifteenDigits) {  // Most numbers that need many.
    const int count = 15 + (decimal.digits >= 10 * kFifteenDigits) + (decimal.digits >= 100 * kFifteenDigits);
    return sign + LengthOfLayout(count, decimal.exponent + count - 1);
  }
  const Digits all = DigitsOf(decimal);
  return sign + LengthOfLayout(all.count, all.exponent);
}

int64_t LengthOfSingle(float x) {
  char text[kNumberRoom];
  return WriteSingle(x, text) - text;
}

void AppendDouble(double x, std::string* out) {
  char text[kNumberRoom];
  out->append(text, WriteDouble(x, text));
}

void AppendSingle(float x, std::string* out) {
  char text[kNumberRoom];
  out->append(text, WriteSingle(x, text));
}

std::string FormatDouble(double x) {
  std::string text;
  AppendDouble(x, &text);
  return text;
}

namespace {

// The digits that identify x, written out with `digits` of them behind the point; "" where it has more.
std::string ShortestFixed(double x, int digits) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), std::fabs(x), std::chars_format::scientific).ptr;
  const std::string_view shortest(text, static_cast<size_t>(end - text));
  const size_t e = shortest.find('e');
  std::string number(1, shortest[0]);
  if (e > 2) number.append(shortest.substr(2, e - 2));
  int exponent = 0;
  const size_t unsigned_exponent = e + (shortest[e + 1] == '+' ? 2 : 1);
  std::from_chars(text + unsigned_exponent, end, exponent);
  const int behind = static_cast<int>(number.size()) - 1 - exponent;
  if (behind > digits) return "";
  if (exponent < 0) number.insert(0, static_cast<size_t>(-exponent), '0');
  number.append(static_cast<size_t>(digits - behind), '0');
  if (digits > 0) number.insert(number.size() - static_cast<size_t>(digits), 1, '.');
  return std::signbit(x) ? "-" + number : number;
}

}  // namespace

std::string FormatFixed(double x, int digits) {
  if (!std::isfinite(x)) return FormatDouble(x);
  std::string text;
  if (x == 0) x = 0.0;  // -0.0 prints without its sign.
  digits = std::max(digits, 0);
  // Of 15 digits in all, those that identify x and those of its expansion are the same.
  constexpr int kSameDigits = 15;
  if (digits > kSameDigits || !(std::fabs(x) < std::pow(10.0, kSameDigits - digits)))
    if (std::string shortest = ShortestFixed(x, digits); !shortest.empty()) return shortest;
  text.resize(static_cast<size_t>(digits) + 320);
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), x, std::chars_format::fixed, digits).ptr;
  text.resize(static_cast<size_t>(end - text.data()));
  return text;
}

std::optional<double> ParseDouble(std::string_view text) {
  text = Trim(text);
  bool negative = false;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    negative = text.front() == '-';
    text.remove_prefix(1);
  }
  const auto with_sign = [negative](double value) { return negative ? -value : value; };
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return with_sign(std::numeric_limits<double>::infinity());
  if (!text.empty() &&
      (text.back() == 'd' || text.back() == 'D' || text.back() == 'f' || text.back() == 'F')) {
    const bool hexadecimal = text.size() > 1 && (text[1] == 'x' || text[1] == 'X');
    // In a hexadecimal number the letter is a digit unless an exponent comes before it.
    if (!hexadecimal || text.find_first_of("pP") != std::string_view::npos) text.remove_suffix(1);
  }
  if (text.empty() || !(IsDigit(text.front()) || text.front() == '.')) return std::nullopt;
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    const std::optional<double> value = ParseHexadecimal(text.substr(2));
    return value ? std::optional<double>(with_sign(*value)) : std::nullopt;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range)
    return with_sign(std::strtod(std::string(text).c_str(), nullptr));
  if (error != std::errc()) return std::nullopt;
  return with_sign(value);
}

}  // namespace heddle
