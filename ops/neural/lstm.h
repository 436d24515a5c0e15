// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/base/operator.h"

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
/// All steps forward; the first five inputs of the call hold cells of that type. kCancelled when cancelled.
template <typename Cell>
Result<LstmStates> RunSteps(const KernelCall& call, const LstmSizes& sizes);

/// Row `row` of the input of step `step`: its d cells of X, then m of the output before.
template <typename Cell>
void CopyInput(const LstmSizes& sizes, const Cell* x_row, int64_t step, const Cell* output_before,
               Cell* input) {
  std::copy_n(x_row + step * sizes.d, sizes.d, input);
  std::copy_n(output_before, sizes.m, input + sizes.d);
}

/// out[j] = tanh(in[j]) for j < count, and sigmoid: of floats the functions of floats (docs/numerics.md,
/// section 9). `out` may be `in`.
void HyperbolicTangents(const double* in, double* out, int64_t count);
void HyperbolicTangents(const float* in, float* out, int64_t count);
void Sigmoids(const double* in, double* out, int64_t count);
void Sigmoids(const float* in, float* out, int64_t count);

}  // namespace heddle::ops
