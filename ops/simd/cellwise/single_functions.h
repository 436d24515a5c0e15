// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

#include "ops/base/cell_codes.h"

namespace heddle::ops {

/// out[i] = f(in[i]) for i < n, in floats (docs/numerics.md, section 9); `out` may be `in`.
using SingleFunction = void (*)(const float* in, float* out, int64_t n);

/// The functions that InSingles names.
struct SingleFunctions {
  SingleFunction exponential, logarithm, hyperbolic_tangent, sigmoid, error_function;

  /// Null for what no function of floats is (InSingles).
  SingleFunction Of(UnaryCode code) const {
    switch (code) {
      case UnaryCode::kSingleExponential: return exponential;
      case UnaryCode::kSingleLogarithm: return logarithm;
      case UnaryCode::kSingleHyperbolicTangent: return hyperbolic_tangent;
      case UnaryCode::kSingleSigmoid: return sigmoid;
      case UnaryCode::kSingleErrorFunction: return error_function;
      default: return nullptr;
    }
  }
};

extern const SingleFunctions kSingleFunctionsAvx2;
extern const SingleFunctions kSingleFunctionsAvx512;

/// The table for SelectedCpu() (ops/base/cpu.h).
const SingleFunctions& SelectedSingleFunctions();

}  // namespace heddle::ops
