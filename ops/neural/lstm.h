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

/// Where what the steps leave is: row t of a matrix for step t, with all sequences side by side, as scripts
/// have it, or row i for sequence i, with all of its steps.
struct LstmPlaces {
  bool by_rows = false;
  int64_t n = 0, steps = 0;
  LstmPlaces(const LstmSizes& sizes, bool rows) : by_rows(rows), n(sizes.n), steps(sizes.steps) {}
  /// The place of a sequence at a step among n * steps.
  int64_t At(int64_t step, int64_t sequence) const {
    return by_rows ? sequence * steps + step : step * n + sequence;
  }
  /// From one sequence to the next.
  int64_t Stride() const { return by_rows ? steps : 1; }
  /// Of a matrix of `width` numbers a place.
  Shape ShapeOf(int64_t width) const;
};

/// What the steps leave: of each place m outputs, m states and 4 * m gates.
struct LstmStates {
  Matrix outputs, cells, gates;
};
/// All steps forward; the first five inputs of the call hold cells of that type. kCancelled when cancelled.
template <typename Cell>
Result<LstmStates> RunSteps(const KernelCall& call, const LstmSizes& sizes, const LstmPlaces& places);

/// The first row of an input that has a row for each sequence: of the rows that are here, where it has more.
template <typename Cell>
const Cell* RowsOfSequences(const KernelCall& call, int input, const LstmSizes& sizes) {
  const Matrix& rows = call.inputs[static_cast<size_t>(input)]->matrix();
  return rows.data<Cell>() + (rows.rows() > sizes.n ? call.row_begin * rows.columns() : 0);
}

/// Whether input `i` of a call is a matrix with as many rows as the first.
inline bool HasRowsOfFirst(std::span<const ValueInfo> inputs, int i) {
  const ValueInfo& input = inputs[static_cast<size_t>(i)];
  return input.IsMatrix() && input.shape.rows == inputs[0].shape.rows;
}

/// Of lstm and lstm_backward: the operator that has a row for each sequence in what scripts have a row for
/// each step in, so that ranks share out the sequences. nullptr for other nodes.
const Operator* ByRowsOf(const Node& node);

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
