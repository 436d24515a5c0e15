// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/values/frame.h"

namespace heddle::ops {

/// UtilFunctions.exponentialMovingAverageImputation(iterations;mode;freq;alpha;beta;gamma): each column is a
/// series, NaN where a value is missing, and becomes what exponential smoothing foretells of it: "single" (a
/// level), "double" (with a trend) or "triple" (with a season of `frequency` rows, an even number).
///
/// Of alpha, beta and gamma, those that are NaN are looked for: as many values as `iterations` says, drawn
/// from a fixed seed, are tried for each column, and those with the least squared error count.
struct MovingAverage {
  enum class Mode : uint8_t { kSingle, kDouble, kTriple };
  struct Weights {
    double alpha = 0, beta = 0, gamma = 0;
  };

  int64_t iterations = 0;
  Mode mode = Mode::kSingle;
  int64_t frequency = 0;
  Weights weights;

  /// The arguments in the brackets of `text`. kInvalidArgument.
  static Result<MovingAverage> Parse(std::string_view text);
  /// n columns of FP64, C1 to Cn. kFailedPrecondition for a cell that is no number and for a series that is
  /// too short; kResourceExhausted.
  Result<Frame> Apply(const Frame& frame) const;

 private:
  Result<std::vector<double>> Best(std::span<const double> series) const;
};

}  // namespace heddle::ops
