// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace heddle {

/// Java's Double.toString: shortest digits that identify the value; plain when 1e-3 <= |x| < 1e7, else
/// d.dddE±x. "NaN", "Infinity", "-Infinity", "-0.0" (language reference 2.9).
std::string FormatDouble(double x);
/// FormatDouble(x) into `out`, where it may use `kNumberRoom` bytes; where the text ends.
char* WriteDouble(double x, char* out);
/// Java's Float.toString: as WriteDouble, with the shortest digits that identify the float.
char* WriteSingle(float x, char* out);
constexpr int kNumberRoom = 32;
/// How many bytes these write, found in about half of the time.
int64_t LengthOfDouble(double x);
int64_t LengthOfSingle(float x);
/// Append the same.
void AppendDouble(double x, std::string* out);
void AppendSingle(float x, std::string* out);
/// Exactly `digits` digits after the point (toString's cells): the digits that identify x and zeros behind
/// them, or where there are more of them, half-even on the exact decimal expansion. -0.0 gives "0.000" for
/// digits=3; a value that only rounds to zero keeps its sign.
std::string FormatFixed(double x, int digits);
/// Java's Double.parseDouble on trimmed text: "1e3", "NaN", "Infinity", "-Infinity", a trailing d or f.
/// nullopt if malformed.
std::optional<double> ParseDouble(std::string_view text);

}  // namespace heddle
