// SPDX-License-Identifier: Apache-2.0
#include "core/text/double_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace heddle {
namespace {

// Appends the word of a NaN or an infinity.
void AppendSpecial(double x, std::string* out) {
  out->append(std::isnan(x) ? "NaN" : x > 0 ? "Infinity" : "-Infinity");
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Lays out digits d1 d2 ... dn of d1.d2...dn * 10^exponent by Java's rules.
void AppendLayout(const char* digits, int count, int exponent, std::string* out) {
  if (exponent >= 7 || exponent < -3) {
    out->push_back(digits[0]);
    out->push_back('.');
    if (count == 1) out->push_back('0');
    out->append(digits + 1, static_cast<size_t>(count - 1));
    out->push_back('E');
    out->append(std::to_string(exponent));
  } else if (exponent < 0) {
    out->append("0.");
    out->append(static_cast<size_t>(-exponent - 1), '0');
    out->append(digits, static_cast<size_t>(count));
  } else {
    const int whole = exponent + 1;
    out->append(digits, static_cast<size_t>(std::min(whole, count)));
    if (count <= whole) {
      out->append(static_cast<size_t>(whole - count), '0');
      out->append(".0");
    } else {
      out->push_back('.');
      out->append(digits + whole, static_cast<size_t>(count - whole));
    }
  }
}

// Digits and exponent of std::to_chars in scientific form, laid out by Java's rules.
void AppendScientific(const char* cursor, const char* end, std::string* out) {
  char digits[24];
  int count = 0;
  for (; *cursor != 'e'; ++cursor)
    if (*cursor != '.') digits[count++] = *cursor;
  ++cursor;
  if (*cursor == '+') ++cursor;
  int exponent = 0;
  std::from_chars(cursor, end, exponent);
  AppendLayout(digits, count, exponent, out);
}

// What needs no search for digits; true if that was all.
bool AppendSimple(double x, std::string* out) {
  if (!std::isfinite(x)) {
    AppendSpecial(x, out);
    return true;
  }
  if (std::signbit(x)) out->push_back('-');
  x = std::abs(x);
  if (x == 0) {
    out->append("0.0");
    return true;
  }
  if (x >= 1e7 || x != std::floor(x)) return false;
  char text[24];  // Small whole numbers are most of what is printed.
  out->append(text, std::to_chars(text, text + sizeof(text), static_cast<int64_t>(x)).ptr);
  out->append(".0");
  return true;
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

void AppendDouble(double x, std::string* out) {
  if (AppendSimple(x, out)) return;
  x = std::abs(x);
  char text[40];
  auto end = std::to_chars(text, text + sizeof(text), x, std::chars_format::scientific).ptr;
  // Where one digit is enough Java takes the best two, which differs only for the few lowest subnormals
  // (4.9E-324).
  if (x < 1e-320 && text[1] != '.') {
    char two[40];
    const auto two_end = std::to_chars(two, two + sizeof(two), x, std::chars_format::scientific, 1).ptr;
    double back = 0;
    std::from_chars(two, two_end, back);
    if (back == x && two[2] != '0') end = std::copy(two, two_end, text);
  }
  AppendScientific(text, end, out);
}

void AppendSingle(float x, std::string* out) {
  if (AppendSimple(static_cast<double>(x), out)) return;
  char text[24];
  AppendScientific(
      text, std::to_chars(text, text + sizeof(text), std::abs(x), std::chars_format::scientific).ptr, out);
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
  std::string text;
  if (!std::isfinite(x)) {
    AppendSpecial(x, &text);
    return text;
  }
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
