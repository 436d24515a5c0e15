// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bench/attempts.h"
#include "bench/base/options.h"
#include "bench/base/expression.h"
#include "core/values/value.h"

namespace heddle::bench {

/// One expression to measure, against the same operators one by one.
struct StitchRow {
  std::string name;
  std::string code;
  std::vector<std::string> results;  ///< As Expression::Compile takes them.
  std::map<std::string, Value> inputs;
  double least_bytes = 0;  ///< What must be read and written.
  /// Writes the first result; empty: no loop.
  std::function<void(Matrix* out)> hand = nullptr;
};

/// Measures rows and prints a line for each.
class StitchMeter {
 public:
  StitchMeter(const BenchOptions& options, ops::Arena* arena);
  /// Stops the process when memory runs out.
  static Matrix InPrecision(const Matrix& matrix, ElementType type);
  bool Wants(const std::string& name) const { return name.find(options_.only) != std::string::npos; }
  /// Loop, expression and operators one by one in turn, between two probes (BestAttempt).
  void Measure(const StitchRow& row);
  const BenchOptions& options() const { return options_; }
  ops::Arena* arena() const { return arena_; }
  bool all_agree() const { return all_agree_; }

 private:
  struct Figures : Attempt {
    double ours_ms = 1e300, hand_ms = 1e300, off_ms = 1e300;
  };
  void Fail(const std::string& name, const std::string& what);
  void Compare(const StitchRow& row, Expression& fused, Expression& unfused, Matrix* by_hand);
  void Print(const StitchRow& row, const Figures& figures, const Expression& fused,
             const Expression& unfused) const;

  BenchOptions options_;
  ops::Arena* arena_;
  ReadProbe probe_;
  bool all_agree_ = true;
};

}  // namespace heddle::bench
