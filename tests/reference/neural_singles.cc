// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/neural_singles.h"

#include <algorithm>
#include <cmath>

#include "ops/base/cell_codes.h"
#include "ops/elementwise/single_precision.h"
#include "ops/simd/cellwise/elementwise.h"

namespace heddle::ops::reference {
namespace {

Matrix Zeros(int64_t rows, int64_t columns) {
  Matrix zeros = *Matrix::Dense(rows, columns, ElementType::kFloat32);
  std::fill_n(zeros.mutable_data<float>(), zeros.cells(), 0.0F);
  return zeros;
}
float At(const Matrix& x, int64_t i, int64_t j) { return x.data<float>()[i * x.columns() + j]; }
float& At(Matrix& x, int64_t i, int64_t j) { return x.mutable_data<float>()[i * x.columns() + j]; }

float Cell(const ImageCall& call, const Matrix& x, int64_t n, int64_t c, int64_t row, int64_t column) {
  if (row < 0 || row >= call.h || column < 0 || column >= call.w) return 0;
  return At(x, n, (c * call.h + row) * call.w + column);
}

// Adds what a chain of floats begins, goes on with and ends after at most 64 terms.
class BlockSum {
 public:
  void Add(float a, float b) {
    chain_ = std::fma(a, b, chain_);
    if (++terms_ == 64) EndBlock();
  }
  void EndBlock() {
    sum_ += static_cast<double>(chain_);
    chain_ = 0;
    terms_ = 0;
  }
  double Sum() {
    EndBlock();
    return sum_;
  }

 private:
  double sum_ = 0;
  float chain_ = 0;
  int terms_ = 0;
};

double Join(const std::vector<double>& leaves, size_t begin, size_t end) {
  if (end - begin == 1) return leaves[begin];
  size_t half = 1;
  while (half * 2 < end - begin) half *= 2;
  return Join(leaves, begin, begin + half) + Join(leaves, begin + half, end);
}

float Function(UnaryCode code, float x) {
  double cell = static_cast<double>(x);
  SelectedElementwiseKernels().Of(code)(&cell, &cell, 1, false);
  return static_cast<float>(cell);
}
float Sigmoid(float x) { return Function(UnaryCode::kSingleSigmoid, x); }
float Tanh(float x) { return Function(UnaryCode::kSingleHyperbolicTangent, x); }

}  // namespace

Matrix Conv2dSingles(const ImageCall& call, const Matrix& x, const Matrix& filters) {
  Matrix result = Zeros(call.n, call.k * call.P() * call.Q());
  for (int64_t n = 0; n < call.n; ++n)
    for (int64_t k = 0; k < call.k; ++k)
      for (int64_t p = 0; p < call.P(); ++p)
        for (int64_t q = 0; q < call.Q(); ++q) {
          BlockSum sum;
          for (int64_t c = 0; c < call.c; ++c)
            for (int64_t i = 0; i < call.r; ++i)
              for (int64_t j = 0; j < call.s; ++j)
                sum.Add(At(filters, k, (c * call.r + i) * call.s + j),
                        Cell(call, x, n, c, p * call.stride_h - call.pad_h + i,
                             q * call.stride_w - call.pad_w + j));
          At(result, n, (k * call.P() + p) * call.Q() + q) = static_cast<float>(sum.Sum());
        }
  return result;
}

Matrix Conv2dBackwardDataSingles(const ImageCall& call, const Matrix& filters, const Matrix& gradient) {
  Matrix result = Zeros(call.n, call.c * call.h * call.w);
  for (int64_t n = 0; n < call.n; ++n)
    for (int64_t c = 0; c < call.c; ++c)
      for (int64_t i = 0; i < call.r; ++i)
        for (int64_t j = 0; j < call.s; ++j)
          for (int64_t p = 0; p < call.P(); ++p)
            for (int64_t q = 0; q < call.Q(); ++q) {
              const int64_t row = p * call.stride_h - call.pad_h + i,
                            column = q * call.stride_w - call.pad_w + j;
              if (row < 0 || row >= call.h || column < 0 || column >= call.w) continue;
              BlockSum sum;
              for (int64_t k = 0; k < call.k; ++k)
                sum.Add(At(filters, k, (c * call.r + i) * call.s + j),
                        At(gradient, n, (k * call.P() + p) * call.Q() + q));
              At(result, n, (c * call.h + row) * call.w + column) += static_cast<float>(sum.Sum());
            }
  return result;
}

Matrix Conv2dBackwardFilterSingles(const ImageCall& call, const Matrix& x, const Matrix& gradient) {
  Matrix result = Zeros(call.k, call.c * call.r * call.s);
  for (int64_t k = 0; k < call.k; ++k)
    for (int64_t c = 0; c < call.c; ++c)
      for (int64_t i = 0; i < call.r; ++i)
        for (int64_t j = 0; j < call.s; ++j) {
          std::vector<double> panels;
          std::vector<BlockSum> sums;
          for (int64_t n = 0; n < call.n; ++n) {
            if (n % 8 == 0) sums.emplace_back();
            for (int64_t p = 0; p < call.P(); ++p)
              for (int64_t q = 0; q < call.Q(); ++q)
                sums.back().Add(At(gradient, n, (k * call.P() + p) * call.Q() + q),
                                Cell(call, x, n, c, p * call.stride_h - call.pad_h + i,
                                     q * call.stride_w - call.pad_w + j));
            sums.back().EndBlock();  // Chains do not go on in the next image.
          }
          for (BlockSum& sum : sums) panels.push_back(sum.Sum());
          if (!panels.empty())
            At(result, k, (c * call.r + i) * call.s + j) =
                static_cast<float>(Join(panels, 0, panels.size()) + 0.0);
        }
  return result;
}

std::vector<Matrix> BatchNormSingles(const Matrix& x, const std::array<Matrix, 4>& columns, bool trains,
                                     double epsilon, double momentum) {
  std::array<Matrix, 4> widened;
  for (size_t i = 0; i < 4; ++i) widened[i] = *Widen(columns[i]);
  std::vector<Matrix> results = BatchNorm(*Widen(x), widened, trains, epsilon, momentum);
  for (Matrix& result : results) result = *Narrow(result);
  const int64_t cells = x.columns() / columns[0].rows();
  for (int64_t n = 0; n < x.rows(); ++n)
    for (int64_t j = 0; j < x.columns(); ++j) {
      const int64_t k = j / cells;
      const float deviation = At(x, n, j) - At(results[3], k, 0), normal = deviation * At(results[4], k, 0);
      const float scaled = normal * At(columns[0], k, 0);
      At(results[0], n, j) = scaled + At(columns[1], k, 0);
    }
  return results;
}

std::vector<Matrix> LstmSingles(const LstmCall& call) {
  const int64_t n = call.x.rows(), m = call.weights.columns() / 4, d = call.weights.rows() - m;
  const int64_t steps = call.x.columns() / d;
  Matrix out = Zeros(n, call.sequences ? steps * m : m), last = Zeros(n, m);
  Matrix outputs = Zeros(steps, n * m), cells = Zeros(steps, n * m), gates = Zeros(steps, n * 4 * m);
  for (int64_t t = 0; t < steps; ++t)
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t g = 0; g < 4 * m; ++g) {
        BlockSum sum;
        for (int64_t j = 0; j < d + m; ++j) {
          const float before = j < d    ? At(call.x, i, t * d + j)
                               : t == 0 ? At(call.out0, i, j - d)
                                        : At(outputs, t - 1, i * m + j - d);
          sum.Add(before, At(call.weights, j, g));
        }
        const float gate = static_cast<float>(sum.Sum()) + At(call.bias, 0, g);
        At(gates, t, i * 4 * m + g) = g < 3 * m ? Sigmoid(gate) : Tanh(gate);
      }
      for (int64_t j = 0; j < m; ++j) {
        const auto gate = [&](int64_t which) { return At(gates, t, i * 4 * m + which * m + j); };
        const float before = t == 0 ? At(call.c0, i, j) : At(cells, t - 1, i * m + j);
        const float kept = gate(1) * before, added = gate(0) * gate(3), cell = kept + added;
        const float output = gate(2) * Tanh(cell);
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

// Of at most a granule of sequences; the gradients of W and b are doubles.
std::vector<Matrix> BackwardOfGranule(const LstmCall& call, const Matrix& of_out, const Matrix& of_cell) {
  const std::vector<Matrix> forward = LstmSingles(call);
  const Matrix &outputs = forward[2], &cells = forward[3], &gates = forward[4];
  const int64_t n = call.x.rows(), m = call.weights.columns() / 4, d = call.weights.rows() - m;
  const int64_t steps = call.x.columns() / d;
  Matrix of_x = Zeros(n, steps * d), of_weights = *FilledMatrix(d + m, 4 * m, 0),
         of_bias = *FilledMatrix(1, 4 * m, 0), back = Zeros(n, m), state = Zeros(n, m);
  std::vector<BlockSum> weight_sums(static_cast<size_t>((d + m) * 4 * m));
  std::vector<double> bias_sums(static_cast<size_t>(4 * m));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < m; ++j) At(state, i, j) = At(of_cell, i, j);
  for (int64_t t = steps - 1; t >= 0; --t) {
    Matrix of_gates = Zeros(n, 4 * m);
    const auto input = [&](int64_t i, int64_t j) {
      if (j < d) return At(call.x, i, t * d + j);
      return t == 0 ? At(call.out0, i, j - d) : At(outputs, t - 1, i * m + j - d);
    };
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < m; ++j) {
        const auto gate = [&](int64_t which) { return At(gates, t, i * 4 * m + which * m + j); };
        float given = 0;
        if (call.sequences) given = At(of_out, i, t * m + j);
        if (!call.sequences && t == steps - 1) given = At(of_out, i, j);
        const float of_output = given + At(back, i, j), tanh = Tanh(At(cells, t, i * m + j));
        const float square = tanh * tanh, product = gate(2) * ((1 - square) * of_output);
        const float of_state = At(state, i, j) + product;
        const float before = t == 0 ? At(call.c0, i, j) : At(cells, t - 1, i * m + j);
        const float g_square = gate(3) * gate(3);
        At(of_gates, i, j) = gate(0) * (1 - gate(0)) * (gate(3) * of_state);
        At(of_gates, i, m + j) = gate(1) * (1 - gate(1)) * (before * of_state);
        At(of_gates, i, 2 * m + j) = gate(2) * (1 - gate(2)) * (tanh * of_output);
        At(of_gates, i, 3 * m + j) = (1 - g_square) * (gate(0) * of_state);
        At(state, i, j) = gate(1) * of_state;
      }
    for (int64_t g = 0; g < 4 * m; ++g) {
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(At(of_gates, i, g));
      bias_sums[static_cast<size_t>(g)] += sum;
      for (int64_t j = 0; j < d + m; ++j)
        for (int64_t i = 0; i < n; ++i)
          weight_sums[static_cast<size_t>(j * 4 * m + g)].Add(input(i, j), At(of_gates, i, g));
    }
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < d + m; ++j) {
        BlockSum sum;
        for (int64_t g = 0; g < 4 * m; ++g) sum.Add(At(of_gates, i, g), At(call.weights, j, g));
        (j < d ? At(of_x, i, t * d + j) : At(back, i, j - d)) = static_cast<float>(sum.Sum());
      }
  }
  std::transform(weight_sums.begin(), weight_sums.end(), of_weights.mutable_data(),
                 [](BlockSum& sum) { return sum.Sum(); });
  std::copy(bias_sums.begin(), bias_sums.end(), of_bias.mutable_data());
  return {of_x, of_weights, of_bias, back, state};
}

}  // namespace

std::vector<Matrix> LstmBackwardSingles(const LstmCall& call, const Matrix& of_out, const Matrix& of_cell) {
  std::vector<Matrix> results = LstmBackwardByGranules(call, of_out, of_cell, BackwardOfGranule);
  for (Matrix& result : results) result = *Narrow(result);
  return results;
}

}  // namespace heddle::ops::reference
