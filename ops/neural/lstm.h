// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/operator.h"

// What lstm and its gradient share.
namespace heddle::ops {

/// n sequences of `steps` inputs of d numbers each; m numbers of state. W has d + m rows and 4 * m columns:
/// gates i, f, o, g. What is not known yet is kUnknown.
struct LstmSizes {
  int64_t n = kUnknown, steps = kUnknown, d = kUnknown, m = kUnknown;
  int64_t depth() const { return d + m; }  ///< Rows of W; both known.
};

/// Of X (n x steps*d), W, b (1 x 4*m), out0 and c0 (n x m, or more rows, which do not count); an error with
/// `code` when they do not fit.
Result<LstmSizes> SizesOf(std::string_view op, Shape x, Shape weights, Shape bias, Shape out0, Shape c0,
                          StatusCode code);

/// What every step leaves: row t holds the outputs (n x m), states (n x m) and gates (n x 4*m) row by row.
struct LstmStates {
  Matrix outputs, cells, gates;
};
/// All steps forward. kCancelled when cancelled.
Result<LstmStates> RunSteps(const KernelCall& call, const LstmSizes& sizes, const Matrix& x,
                            const Matrix& weights, const Matrix& bias, const Matrix& out0, const Matrix& c0);

/// Row `row` of the input of step `step`: its d cells of X, then m of the output before.
void CopyInput(const LstmSizes& sizes, const double* x_row, int64_t step, const double* output_before,
               double* input);

}  // namespace heddle::ops
