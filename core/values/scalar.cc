// SPDX-License-Identifier: Apache-2.0
#include "core/values/scalar.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "core/text/double_text.h"
#include "core/text/quoted.h"

namespace heddle {

ValueType Scalar::type() const {
  if (IsString()) return ValueType::kString;
  if (IsInteger()) return ValueType::kInteger;
  return IsBoolean() ? ValueType::kBoolean : ValueType::kDouble;
}

double Scalar::AsDouble() const {
  if (const double* x = std::get_if<double>(&value_)) return *x;
  if (const int64_t* x = std::get_if<int64_t>(&value_)) return static_cast<double>(*x);
  if (const bool* x = std::get_if<bool>(&value_)) return *x ? 1.0 : 0.0;
  return std::numeric_limits<double>::quiet_NaN();
}

int64_t Scalar::AsInteger() const {
  if (const int64_t* x = std::get_if<int64_t>(&value_)) return *x;
  return TruncateToInteger(AsDouble());
}

bool Scalar::AsBoolean() const {
  if (IsString()) return AsString() == "TRUE" || AsString() == "true";
  if (const int64_t* x = std::get_if<int64_t>(&value_)) return *x != 0;
  return AsDouble() != 0;
}

std::string Scalar::ToText() const {
  if (IsString()) return AsString();
  if (const int64_t* x = std::get_if<int64_t>(&value_)) return std::to_string(*x);
  if (const bool* x = std::get_if<bool>(&value_)) return *x ? "TRUE" : "FALSE";
  return FormatDouble(AsDouble());
}

std::string Scalar::ToLiteral() const {
  if (!IsDouble()) {
    if (!IsString()) return ToText();
    std::string quoted;
    AppendQuoted(AsString(), &quoted);
    return quoted;
  }
  const double x = AsDouble();
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof(digits), std::fabs(x), std::chars_format::hex).ptr;
  return (std::signbit(x) ? "-0x" : "0x") + std::string(digits, end);
}

Result<Scalar> Scalar::ParseLiteral(std::string_view text) {
  const auto malformed = [text] { return DataLoss("malformed literal: {}", text); };
  if (text == "TRUE") return Scalar(true);
  if (text == "FALSE") return Scalar(false);
  if (text == "nan") return Scalar(std::numeric_limits<double>::quiet_NaN());
  if (text == "inf") return Scalar(std::numeric_limits<double>::infinity());
  if (text == "-inf") return Scalar(-std::numeric_limits<double>::infinity());
  if (!text.empty() && text.front() == '"') {
    QuotedText quoted = ReadQuoted(text);
    if (!quoted.expected.empty() || quoted.end != text.size()) return malformed();
    return Scalar(std::move(quoted.text));
  }
  const char* const end = text.data() + text.size();
  const bool negative = !text.empty() && text.front() == '-';
  const std::string_view magnitude = text.substr(negative ? 1 : 0);
  if (magnitude.substr(0, 2) == "0x" && magnitude.substr(2, 1) != "-") {
    double x = 0;
    const auto [stop, error] = std::from_chars(magnitude.data() + 2, end, x, std::chars_format::hex);
    if (error != std::errc() || stop != end || !std::isfinite(x)) return malformed();
    return Scalar(negative ? -x : x);
  }
  int64_t x = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, x);
  if (error != std::errc() || stop != end) return malformed();
  return Scalar(x);
}

int64_t TruncateToInteger(double x) {
  if (std::isnan(x)) return 0;  // As Java's narrowing does.
  const double magnitude = std::floor(std::fabs(x) + 0x1p-53);
  if (magnitude >= 0x1p63)
    return x > 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
  const auto whole = static_cast<int64_t>(magnitude);
  return x < 0 ? -whole : whole;
}

}  // namespace heddle
