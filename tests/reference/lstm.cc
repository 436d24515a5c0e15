// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/lstm.h"

#include <algorithm>
#include <cmath>

#include "core/values/panels.h"
#include "ops/frame/row_pieces.h"
#include "ops/simd/cellwise/math.h"
#include "tests/reference/aggregate.h"

namespace heddle::ops::reference {
namespace {

double& At(Matrix& x, int64_t i, int64_t j) { return x.mutable_data()[i * x.columns() + j]; }

}  // namespace

std::vector<Matrix> Lstm(const LstmCall& call) {
  const int64_t n = call.x.rows(), m = call.weights.columns() / 4, d = call.weights.rows() - m;
  const int64_t steps = call.x.columns() / d;
  Matrix out = *FilledMatrix(n, call.sequences ? steps * m : m, 0), last = *FilledMatrix(n, m, 0);
  Matrix outputs = *FilledMatrix(steps, n * m, 0), cells = *FilledMatrix(steps, n * m, 0),
         gates = *FilledMatrix(steps, n * 4 * m, 0);
  for (int64_t t = 0; t < steps; ++t)
    for (int64_t i = 0; i < n; ++i) {
      const auto output_before = [&](int64_t j) {
        return t == 0 ? call.out0.At(i, j) : outputs.At(t - 1, i * m + j);
      };
      for (int64_t g = 0; g < 4 * m; ++g) {
        double sum = 0;
        for (int64_t j = 0; j < d + m; ++j)
          sum = std::fma(j < d ? call.x.At(i, t * d + j) : output_before(j - d), call.weights.At(j, g), sum);
        sum = (sum + 0.0) + call.bias.At(0, g);
        At(gates, t, i * 4 * m + g) = g < 3 * m ? Sigmoid(sum) : Tanh(sum);
      }
      for (int64_t j = 0; j < m; ++j) {
        const auto gate = [&](int64_t which) { return gates.At(t, i * 4 * m + which * m + j); };
        const double before = t == 0 ? call.c0.At(i, j) : cells.At(t - 1, i * m + j);
        const double kept = gate(1) * before, added = gate(0) * gate(3), cell = kept + added;
        const double output = gate(2) * Tanh(cell);
        At(cells, t, i * m + j) = cell;
        At(outputs, t, i * m + j) = output;
        if (call.sequences) At(out, i, t * m + j) = output;
        if (t == steps - 1) At(last, i, j) = cell;
        if (t == steps - 1 && !call.sequences) At(out, i, j) = output;
      }
    }
  return {out, last, outputs, cells, gates};
}

namespace {

// Of at most a granule of sequences.
std::vector<Matrix> BackwardOfGranule(const LstmCall& call, const Matrix& of_out, const Matrix& of_cell) {
  const std::vector<Matrix> forward = Lstm(call);
  const Matrix &outputs = forward[2], &cells = forward[3], &gates = forward[4];
  const int64_t n = call.x.rows(), m = call.weights.columns() / 4, d = call.weights.rows() - m;
  const int64_t steps = call.x.columns() / d;
  Matrix of_x = *FilledMatrix(n, steps * d, 0), of_weights = *FilledMatrix(d + m, 4 * m, 0),
         of_bias = *FilledMatrix(1, 4 * m, 0), back = *FilledMatrix(n, m, 0), state = *FilledMatrix(n, m, 0);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < m; ++j) At(state, i, j) = of_cell.At(i, j);
  for (int64_t t = steps - 1; t >= 0; --t) {
    Matrix of_gates = *FilledMatrix(n, 4 * m, 0);
    const auto output_before = [&](int64_t i, int64_t j) {
      return t == 0 ? call.out0.At(i, j) : outputs.At(t - 1, i * m + j);
    };
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < m; ++j) {
        const auto gate = [&](int64_t which) { return gates.At(t, i * 4 * m + which * m + j); };
        double given = 0;
        if (call.sequences) given = of_out.At(i, t * m + j);
        if (!call.sequences && t == steps - 1) given = of_out.At(i, j);
        const double of_output = given + back.At(i, j), tanh = Tanh(cells.At(t, i * m + j));
        const double square = tanh * tanh, product = gate(2) * ((1 - square) * of_output);
        const double of_state = state.At(i, j) + product;
        const double before = t == 0 ? call.c0.At(i, j) : cells.At(t - 1, i * m + j);
        const double g_square = gate(3) * gate(3);
        At(of_gates, i, j) = gate(0) * (1 - gate(0)) * (gate(3) * of_state);
        At(of_gates, i, m + j) = gate(1) * (1 - gate(1)) * (before * of_state);
        At(of_gates, i, 2 * m + j) = gate(2) * (1 - gate(2)) * (tanh * of_output);
        At(of_gates, i, 3 * m + j) = (1 - g_square) * (gate(0) * of_state);
        At(state, i, j) = gate(1) * of_state;
      }
    for (int64_t g = 0; g < 4 * m; ++g) {
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += of_gates.At(i, g);
      At(of_bias, 0, g) += sum;
      for (int64_t j = 0; j < d + m; ++j) {
        double chain = 0;
        for (int64_t i = 0; i < n; ++i)
          chain =
              std::fma(j < d ? call.x.At(i, t * d + j) : output_before(i, j - d), of_gates.At(i, g), chain);
        At(of_weights, j, g) += chain + 0.0;
      }
    }
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < d + m; ++j) {
        double chain = 0;
        for (int64_t g = 0; g < 4 * m; ++g) chain = std::fma(of_gates.At(i, g), call.weights.At(j, g), chain);
        (j < d ? At(of_x, i, t * d + j) : At(back, i, j - d)) = chain + 0.0;
      }
  }
  return {of_x, of_weights, of_bias, back, state};
}

Matrix Sum(const Matrix& a, const Matrix& b) {
  Matrix sum = *FilledMatrix(a.rows(), a.columns(), 0);
  for (int64_t i = 0; i < a.rows(); ++i)
    for (int64_t j = 0; j < a.columns(); ++j) At(sum, i, j) = a.At(i, j) + b.At(i, j);
  return sum;
}

}  // namespace

std::vector<Matrix> LstmBackward(const LstmCall& call, const Matrix& of_out, const Matrix& of_cell) {
  return LstmBackwardByGranules(call, of_out, of_cell, BackwardOfGranule);
}

std::vector<Matrix> LstmBackwardByGranules(const LstmCall& call, const Matrix& of_out, const Matrix& of_cell,
                                           LstmBackwardLoops of_granule) {
  const int64_t n = call.x.rows(), granule = Granule(n);
  if (n <= granule) return of_granule(call, of_out, of_cell);
  std::vector<std::vector<Matrix>> leaves;
  for (int64_t begin = 0; begin < n; begin += granule) {
    const int64_t end = std::min(n, begin + granule);
    const Matrix x = call.x.Rows(begin, end), out0 = call.out0.Rows(begin, end),
                 c0 = call.c0.Rows(begin, end);
    leaves.push_back(of_granule({x, call.weights, call.bias, out0, c0, call.sequences},
                                of_out.Rows(begin, end), of_cell.Rows(begin, end)));
  }
  std::vector<Matrix> results;
  for (size_t result = 0; result < 5; ++result) {
    std::vector<Matrix> of_leaves;
    for (const std::vector<Matrix>& leaf : leaves) of_leaves.push_back(leaf[result]);
    if (result == 1 || result == 2) {
      results.push_back(Tree(of_leaves, 0, of_leaves.size(), Sum));
      continue;
    }
    std::vector<Value> rows(of_leaves.begin(), of_leaves.end());
    std::vector<const Value*> pieces;
    for (const Value& piece : rows) pieces.push_back(&piece);
    results.push_back(JoinRows(pieces)->matrix());
  }
  return results;
}

}  // namespace heddle::ops::reference
