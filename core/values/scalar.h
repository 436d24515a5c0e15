// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "core/status.h"
#include "core/values/data_type.h"

namespace heddle {

/// A scalar of the language: double, int64, boolean or string.
class Scalar {
 public:
  Scalar() : value_(0.0) {}
  Scalar(double value) : value_(value) {}                     // NOLINT: implicit by design
  Scalar(int64_t value) : value_(value) {}                    // NOLINT
  Scalar(int value) : value_(static_cast<int64_t>(value)) {}  // NOLINT
  Scalar(bool value) : value_(value) {}                       // NOLINT
  Scalar(std::string value) : value_(std::move(value)) {}     // NOLINT
  Scalar(const char* value) : value_(std::string(value)) {}   // NOLINT

  ValueType type() const;
  bool IsString() const { return std::holds_alternative<std::string>(value_); }
  bool IsInteger() const { return std::holds_alternative<int64_t>(value_); }
  bool IsBoolean() const { return std::holds_alternative<bool>(value_); }
  bool IsDouble() const { return std::holds_alternative<double>(value_); }

  /// Numeric view: booleans are 0/1, integers convert. A string gives NaN; ask IsString() first.
  double AsDouble() const;
  /// Truncates toward zero as language reference 2.2 says: sign(x) * floor(|x| + 2^-53); saturates at the
  /// int64 range.
  int64_t AsInteger() const;
  /// Non-zero counts as true; for strings only "TRUE" and "true".
  bool AsBoolean() const;
  const std::string& AsString() const { return std::get<std::string>(value_); }

  /// What print() shows (language reference 2.9).
  std::string ToText() const;

  bool operator==(const Scalar&) const = default;

  /// Literal form in Graph, Program and Plan texts: 1.5d-style hex float for doubles ("0x1.8p+0"), "3"
  /// integer, "TRUE", and a quoted string. ParseLiteral(ToLiteral(x)) == x, NaN included ("nan", "inf",
  /// "-inf").
  std::string ToLiteral() const;
  static Result<Scalar> ParseLiteral(std::string_view text);

 private:
  std::variant<double, int64_t, bool, std::string> value_;
};

/// sign(x) * floor(|x| + 2^-53), the truncation DML uses wherever a double becomes an integer.
int64_t TruncateToInteger(double x);

}  // namespace heddle
