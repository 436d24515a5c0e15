// SPDX-License-Identifier: Apache-2.0
#include "ops/text/java_format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "core/text/double_text.h"
#include "core/text/utf8.h"
#include "ops/text/java_text.h"
#include "ops/text/letter_case.h"

namespace heddle::ops {
namespace {

struct Specifier {
  std::string_view text;  // as written, for messages
  int index = 0;          // 0: the next argument, -1: the one before again
  bool left = false, alternate = false, plus = false, blank = false, zero = false, group = false,
       parentheses = false;
  int width = -1;
  int precision = -1;
  char conversion = 0;
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

constexpr int kMostWidth = 100'000;  // and precision
constexpr size_t kMostBytes = size_t{1} << 30;

// kMostWidth + 1 of any number beyond that.
int ReadNumber(std::string_view text, size_t* at) {
  int number = 0;
  while (*at < text.size() && IsDigit(text[*at]))
    number = std::min(number * 10 + (text[(*at)++] - '0'), kMostWidth + 1);
  return number;
}

// Reads the specifier after the % at text[*at]; leaves *at after it.
Result<Specifier> ReadSpecifier(std::string_view text, size_t* at) {
  const size_t begin = *at;
  Specifier spec;
  ++*at;
  const size_t after_percent = *at;
  if (*at < text.size() && text[*at] == '<') {
    spec.index = -1;
    ++*at;
  } else if (*at < text.size() && IsDigit(text[*at])) {
    const int number = ReadNumber(text, at);
    if (*at < text.size() && text[*at] == '$' && number > 0) {
      spec.index = number;
      ++*at;
    } else {
      *at = after_percent;
    }
  }
  for (; *at < text.size(); ++*at) {
    const char c = text[*at];
    if (c == '-')
      spec.left = true;
    else if (c == '#')
      spec.alternate = true;
    else if (c == '+')
      spec.plus = true;
    else if (c == ' ')
      spec.blank = true;
    else if (c == '0')
      spec.zero = true;
    else if (c == ',')
      spec.group = true;
    else if (c == '(')
      spec.parentheses = true;
    else
      break;
  }
  if (*at < text.size() && IsDigit(text[*at])) spec.width = ReadNumber(text, at);
  if (*at < text.size() && text[*at] == '.') {
    ++*at;
    if (*at >= text.size() || !IsDigit(text[*at]))
      return FailedPrecondition("format: a precision is missing in {}", text.substr(begin, *at - begin));
    spec.precision = ReadNumber(text, at);
  }
  if (*at >= text.size()) return FailedPrecondition("format: the text ends inside {}", text.substr(begin));
  spec.conversion = text[(*at)++];
  spec.text = text.substr(begin, *at - begin);
  if (std::string_view("dxXofeEgGsSbBcCn%").find(spec.conversion) == std::string_view::npos)
    return FailedPrecondition("format: unknown conversion {}", spec.text);
  if (std::max(spec.width, spec.precision) > kMostWidth)
    return FailedPrecondition("format: the {} of {} is beyond {}",
                              spec.width > kMostWidth ? "width" : "precision", spec.text, kMostWidth);
  if ((spec.left || spec.zero) && spec.width < 0 && spec.conversion != 'n')
    return FailedPrecondition("format: a width is missing in {}", spec.text);
  if ((spec.left && spec.zero) || (spec.plus && spec.blank))
    return FailedPrecondition("format: flags of {} exclude each other", spec.text);
  if (spec.precision >= 0 && std::string_view("dxXocC").find(spec.conversion) != std::string_view::npos)
    return FailedPrecondition("format: {} takes no precision", spec.text);
  return spec;
}

// How many units of UTF-16 the UTF-8 text has.
size_t Units(std::string_view text) {
  size_t units = 0;
  for (const char byte : text) {
    const auto value = static_cast<unsigned char>(byte);
    if ((value & 0xC0) != 0x80) units += value >= 0xF0 ? 2 : 1;
  }
  return units;
}

std::string Pad(std::string text, const Specifier& spec) {
  const size_t width = static_cast<size_t>(std::max(spec.width, 0));
  const size_t units = Units(text);
  if (units >= width) return text;
  const std::string blanks(width - units, ' ');
  return spec.left ? text + blanks : blanks + text;
}

std::string Upper(const std::string& text) { return ToUtf8(UpperCaseText(ToUtf16(text))); }

// Adds sign, grouping and padding to the digits of |x| ("123.45", "1.5e+10").
std::string FinishNumber(std::string digits, bool negative, const Specifier& spec) {
  if (spec.group) {
    size_t end = std::min(digits.find('.'), digits.size());
    for (size_t i = end; i > 3; i -= 3) digits.insert(i - 3, ",");
  }
  std::string prefix, suffix;
  if (negative) {
    prefix = spec.parentheses ? "(" : "-";
    if (spec.parentheses) suffix = ")";
  } else if (spec.plus) {
    prefix = "+";
  } else if (spec.blank) {
    prefix = " ";
  }
  if (spec.zero) {
    const size_t length = prefix.size() + digits.size() + suffix.size();
    if (static_cast<size_t>(spec.width) > length)
      digits.insert(0, static_cast<size_t>(spec.width) - length, '0');
  }
  return Pad(prefix + digits + suffix, spec);
}

// |x| = 0.d1d2d3... * 10^point; no digits for zero.
struct Decimal {
  std::string digits;
  int point = 0;
};

Decimal ShortestDigits(double magnitude) {
  Decimal decimal;
  if (magnitude == 0) return decimal;
  char buffer[40];
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), magnitude, std::chars_format::scientific).ptr;
  const char* exponent = std::find(static_cast<const char*>(buffer), static_cast<const char*>(end), 'e');
  for (const char* p = buffer; p < exponent; ++p)
    if (*p != '.') decimal.digits += *p;
  int power = 0;
  std::from_chars(exponent + (exponent[1] == '+' ? 2 : 1), end, power);
  decimal.point = power + 1;
  return decimal;
}

// Keeps `count` digits (may be negative: none), half up.
void RoundTo(Decimal* decimal, int count) {
  if (count >= static_cast<int>(decimal->digits.size())) return;
  const bool up = count >= 0 && decimal->digits[static_cast<size_t>(count)] >= '5';
  decimal->digits.resize(static_cast<size_t>(std::max(count, 0)));
  if (!up) return;
  for (size_t i = decimal->digits.size(); i > 0; --i) {
    if (decimal->digits[i - 1] != '9') {
      ++decimal->digits[i - 1];
      return;
    }
    decimal->digits[i - 1] = '0';
  }
  decimal->digits.insert(0, "1");
  ++decimal->point;
}

char DigitAt(const Decimal& decimal, int i) {
  return i >= 0 && i < static_cast<int>(decimal.digits.size()) ? decimal.digits[static_cast<size_t>(i)] : '0';
}

std::string PlainDigits(Decimal decimal, int precision, bool point) {
  RoundTo(&decimal, decimal.point + precision);
  std::string text;
  for (int i = 0; i < decimal.point; ++i) text += DigitAt(decimal, i);
  if (text.empty()) text = "0";
  if (precision > 0 || point) text += '.';
  for (int i = 0; i < precision; ++i) text += DigitAt(decimal, decimal.point + i);
  return text;
}

std::string ScientificDigits(Decimal decimal, int precision, bool point) {
  RoundTo(&decimal, precision + 1);
  std::string text(1, DigitAt(decimal, 0));
  if (precision > 0 || point) text += '.';
  for (int i = 1; i <= precision; ++i) text += DigitAt(decimal, i);
  const int exponent = decimal.digits.empty() ? 0 : decimal.point - 1;
  return text + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
}

std::string FormatDoubleAs(double x, const Specifier& spec) {
  const bool negative = std::signbit(x) && !std::isnan(x);
  if (!std::isfinite(x)) {
    Specifier plain = spec;
    plain.zero = plain.group = false;
    if (std::isnan(x)) plain.plus = plain.blank = false;
    return FinishNumber(std::isnan(x) ? "NaN" : "Infinity", negative, plain);
  }
  Decimal decimal = ShortestDigits(std::fabs(x));
  const int precision = spec.precision < 0 ? 6 : spec.precision;
  switch (spec.conversion) {
    case 'f': return FinishNumber(PlainDigits(decimal, precision, spec.alternate), negative, spec);
    case 'e':
    case 'E': return FinishNumber(ScientificDigits(decimal, precision, spec.alternate), negative, spec);
    default: {  // g: `precision` significant digits, plain for 1e-4 <= |x| < 10^precision after rounding
      const int significant = std::max(precision, 1);
      Decimal rounded = decimal;
      RoundTo(&rounded, significant);
      if (rounded.digits.empty())
        return FinishNumber(PlainDigits(decimal, significant - 1, false), negative, spec);
      if (rounded.point > -4 && rounded.point <= significant)
        return FinishNumber(PlainDigits(decimal, significant - rounded.point, false), negative, spec);
      return FinishNumber(ScientificDigits(decimal, significant - 1, false), negative, spec);
    }
  }
}

// UTF-8 of a code point.
std::optional<std::string> Encode(int64_t code) {
  if (code < 0 || code > 0x10ffff) return std::nullopt;
  if (code < 0x10000) return ToUtf8(std::u16string(1, static_cast<char16_t>(code)));
  return ToUtf8(std::u16string{static_cast<char16_t>(0xD800 + ((code - 0x10000) >> 10)),
                               static_cast<char16_t>(0xDC00 + ((code - 0x10000) & 0x3FF))});
}

std::string TextOf(const JavaFormatArgument& argument) {
  if (const auto* const value = std::get_if<bool>(&argument)) return *value ? "true" : "false";
  if (const auto* const value = std::get_if<char16_t>(&argument)) return ToUtf8(std::u16string(1, *value));
  if (const auto* const value = std::get_if<int32_t>(&argument)) return std::to_string(*value);
  if (const auto* const value = std::get_if<int64_t>(&argument)) return std::to_string(*value);
  if (const auto* const value = std::get_if<double>(&argument)) return FormatDouble(*value);
  if (const auto* const value = std::get_if<std::string>(&argument)) return *value;
  return "null";
}

Status Misfit(const Specifier& spec, std::string_view wanted, const JavaFormatArgument& argument) {
  constexpr std::string_view kNames[] = {"", "boolean", "char", "integer", "integer", "double", "string"};
  std::string text = TextOf(argument);
  if (const auto* const value = std::get_if<bool>(&argument)) text = *value ? "TRUE" : "FALSE";
  return FailedPrecondition("format: {} needs {}, not the {} {}", spec.text, wanted, kNames[argument.index()],
                            ShownInLine(text, 40));
}

std::optional<int64_t> IntegerOf(const JavaFormatArgument& argument) {
  if (const auto* const value = std::get_if<int32_t>(&argument)) return *value;
  if (const auto* const value = std::get_if<int64_t>(&argument)) return *value;
  return std::nullopt;
}

Result<std::string> FormatArgument(const Specifier& spec, const JavaFormatArgument& argument) {
  const bool is_null = std::holds_alternative<std::monostate>(argument);
  const std::optional<int64_t> integer = IntegerOf(argument);
  const bool is_text = std::string_view("sSbB").find(spec.conversion) != std::string_view::npos;
  if (is_null && !is_text) {
    const std::string_view null = "null";
    const size_t most = spec.precision < 0 ? null.size() : static_cast<size_t>(spec.precision);
    const std::string text = Pad(std::string(null.substr(0, most)), spec);
    return spec.conversion >= 'A' && spec.conversion <= 'Z' ? Upper(text) : text;
  }
  switch (spec.conversion) {
    case 'd': {
      if (!integer) return Misfit(spec, "an integer", argument);
      const int64_t x = *integer;
      const uint64_t magnitude = x < 0 ? uint64_t{0} - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
      return FinishNumber(fmt::format("{}", magnitude), x < 0, spec);
    }
    case 'x':
    case 'X':
    case 'o': {
      if (!integer) return Misfit(spec, "an integer", argument);
      const bool is_int = std::holds_alternative<int32_t>(argument);
      const uint64_t bits = is_int ? static_cast<uint32_t>(*integer) : static_cast<uint64_t>(*integer);
      std::string digits = spec.conversion == 'o' ? fmt::format("{:o}", bits) : fmt::format("{:x}", bits);
      if (spec.alternate) digits.insert(0, spec.conversion == 'o' ? "0" : "0x");
      if (spec.zero && digits.size() < static_cast<size_t>(spec.width))
        digits.insert(spec.alternate && spec.conversion != 'o' ? 2 : 0,
                      static_cast<size_t>(spec.width) - digits.size(), '0');
      digits = Pad(digits, spec);
      return spec.conversion == 'X' ? Upper(digits) : digits;
    }
    case 'f':
    case 'e':
    case 'g':
    case 'E':
    case 'G': {
      const auto* const x = std::get_if<double>(&argument);
      if (x == nullptr) return Misfit(spec, "a double", argument);
      const std::string text = FormatDoubleAs(*x, spec);
      return spec.conversion == 'E' || spec.conversion == 'G' ? Upper(text) : text;
    }
    case 'c':
    case 'C': {
      const auto* const unit = std::get_if<char16_t>(&argument);
      if (unit == nullptr && !integer) return Misfit(spec, "an integer code point", argument);
      const std::optional<std::string> text = Encode(unit != nullptr ? int64_t{*unit} : *integer);
      if (!text) return Misfit(spec, "an integer code point", argument);
      return Pad(spec.conversion == 'C' ? Upper(*text) : *text, spec);
    }
    default: {  // s S b B
      std::string text = TextOf(argument);
      const bool is_boolean = std::holds_alternative<bool>(argument);
      if ((spec.conversion == 'b' || spec.conversion == 'B') && !is_boolean)
        text = is_null ? "false" : "true";
      if (spec.precision >= 0 && Units(text) > static_cast<size_t>(spec.precision))
        text = ToUtf8(ToUtf16(text).substr(0, static_cast<size_t>(spec.precision)));
      text = Pad(std::move(text), spec);
      return spec.conversion == 'S' || spec.conversion == 'B' ? Upper(text) : text;
    }
  }
}

}  // namespace

Result<std::string> JavaFormat(std::string_view format, std::span<const JavaFormatArgument> arguments) {
  std::string out;
  int next = 0;
  int last = -1;
  for (size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      out += format[at++];
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(const Specifier spec, ReadSpecifier(format, &at));
    if (spec.conversion == 'n') {
      out += '\n';
      continue;
    }
    if (spec.conversion == '%') {
      out += Pad("%", spec);
      continue;
    }
    const int index = spec.index > 0 ? spec.index - 1 : spec.index == 0 ? next++ : last;
    if (index < 0 || index >= static_cast<int>(arguments.size()))
      return FailedPrecondition("format: there is no argument for {}", spec.text);
    last = index;
    HEDDLE_ASSIGN_OR_RETURN(const std::string text,
                            FormatArgument(spec, arguments[static_cast<size_t>(index)]));
    if (out.size() + text.size() > kMostBytes)
      return ResourceExhausted("format: the text is longer than {} bytes", kMostBytes);
    out += text;
  }
  return out;
}

Result<std::string> JavaFormat(std::string_view format, std::span<const Scalar* const> arguments) {
  std::vector<JavaFormatArgument> values;
  for (const Scalar* const argument : arguments) {
    if (argument->IsBoolean())
      values.emplace_back(argument->AsBoolean());
    else if (argument->IsInteger())
      values.emplace_back(argument->AsInteger());
    else if (argument->IsDouble())
      values.emplace_back(argument->AsDouble());
    else
      values.emplace_back(argument->ToText());
  }
  return JavaFormat(format, values);
}

}  // namespace heddle::ops
