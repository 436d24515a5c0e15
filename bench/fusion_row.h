// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>

#include "bench/attempts.h"
#include "bench/base/options.h"
#include "bench/blas.h"
#include "core/values/matrix.h"
#include "core/values/value.h"
#include "ops/base/parallel.h"

namespace heddle::bench {

/// One expression to measure.
struct FusionRow {
  std::string name;
  std::string code, result;  ///< As Expression::Compile takes them.
  std::map<std::string, Value> inputs;
  Shape shape;       ///< Of the result.
  double bytes = 0;  ///< Compulsory traffic.
  double flops = 0;  ///< Not 0: the limit is the FMA peak (or the read probe where that is slower).
  /// Writes the result, row-major. With `flops`: Eigen's product. Empty: the limit is the read probe (with
  /// `flops` as above), and the result is compared with that of the operators one by one.
  std::function<void(double* out)> hand = nullptr;
  std::function<void(double* out)> blas = nullptr;  ///< The same by OpenBLAS, where there is one.
};

/// Measures rows and prints a line for each.
class FusionMeter {
 public:
  FusionMeter(const BenchOptions& options, ops::Arena* arena);
  bool Wants(const std::string& name) const { return name.find(options_.only) != std::string::npos; }
  /// One line of all probes: read and write bandwidth, FMA peak, a product by OpenBLAS (Eigen without it).
  void PrintProbes();
  /// Loop and expression in turn, between two probes (BestAttempt).
  void Measure(const FusionRow& row);
  /// A row that could not be compiled.
  void Fail(const std::string& name, const Status& status);
  const Blas& blas() const { return blas_; }
  ops::Arena* arena() const { return arena_; }
  const BenchOptions& options() const { return options_; }
  bool all_agree() const { return all_agree_; }

 private:
  struct Figures : Attempt {
    double ours_ms = 1e300, hand_ms = 1e300, blas_ms = 1e300, peak = 0, gemm = 0;
  };
  double GemmProbe();  // GFLOP/s.
  void Print(const FusionRow& row, const Figures& figures, double compile_ms, const std::string& plan) const;
  void PrintLine(const std::string& name, const std::string& plan, double ms, double limit_ms,
                 const FusionRow& row, const Figures& figures, double compile_ms,
                 const std::string& text) const;

  BenchOptions options_;
  ops::Arena* arena_;
  ReadProbe probe_;
  Matrix probe_product_;
  Blas blas_;
  bool all_agree_ = true;
};

}  // namespace heddle::bench
