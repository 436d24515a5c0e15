// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace heddle::ops::printed {

/// Writes the statements of one basic block of OpenCL C, each of which defines one value. An expression that
/// stands there already is not written again. While it lives it is the printer to which the functions of
/// printed_vector.h write on its thread.
class Printer {
 public:
  /// Names of values begin with `prefix`; lines with `indent`. `eights`: values are vectors of eight lanes
  /// (double8; masks are long8), which some functions of printed_vector.h know: those of folds.
  Printer(std::string prefix, std::string indent, bool eights = false);
  ~Printer();
  Printer(const Printer&) = delete;
  Printer& operator=(const Printer&) = delete;
  static Printer& Current();

  /// The name of a value of `type` that is `expression`.
  std::string Define(std::string_view type, const std::string& expression);
  /// The name of a type or conversion of this printer's values: "as_double", or "as_double8".
  std::string Widened(std::string_view name) const;
  /// A line as it is. Values before it still count as defined behind it.
  void Line(std::string_view line);
  /// A name that nothing else has.
  std::string NewName();
  std::string TakeText() { return std::exchange(text_, {}); }

 private:
  const std::string prefix_, indent_;
  const bool eights_;
  Printer* const outer_;
  int count_ = 0;
  std::string text_;
  std::map<std::pair<std::string, std::string>, std::string, std::less<>> defined_;
};

/// The sum of eight lanes (L, docs/numerics.md, section 2); `lane` has {} where the number of a lane stands.
std::string SumOfLanes(std::string_view lane);

/// Numbers as literals that are these very numbers; no vectors.
std::string LiteralOf(double x);
std::string LiteralOf(float x);

}  // namespace heddle::ops::printed
