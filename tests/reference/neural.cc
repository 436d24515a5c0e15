// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/neural.h"

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "core/values/panels.h"
#include "tests/reference/aggregate.h"

namespace heddle::ops::reference {
namespace {

// x at (image, channel, row, column); 0 outside the image.
double Cell(const ImageCall& call, const Matrix& x, int64_t n, int64_t c, int64_t row, int64_t column) {
  if (row < 0 || row >= call.h || column < 0 || column >= call.w) return 0;
  return x.At(n, (c * call.h + row) * call.w + column);
}

double& At(Matrix& x, int64_t i, int64_t j) { return x.mutable_data()[i * x.columns() + j]; }

double Join(const std::vector<double>& leaves, size_t begin, size_t end) {
  if (end - begin == 1) return leaves[begin];
  size_t half = 1;
  while (half * 2 < end - begin) half *= 2;
  return Join(leaves, begin, begin + half) + Join(leaves, begin + half, end);
}

// `pool(cells, has_nan)` of the cells of each window that are in the image.
Matrix Pool(const ImageCall& call, const Matrix& x,
            const std::function<double(const std::vector<double>& cells)>& pool) {
  Matrix result = *FilledMatrix(call.n, call.c * call.P() * call.Q(), 0);
  for (int64_t n = 0; n < call.n; ++n)
    for (int64_t c = 0; c < call.c; ++c)
      for (int64_t p = 0; p < call.P(); ++p)
        for (int64_t q = 0; q < call.Q(); ++q) {
          std::vector<double> cells;
          for (int64_t i = 0; i < call.r; ++i)
            for (int64_t j = 0; j < call.s; ++j) {
              const int64_t row = p * call.stride_h - call.pad_h + i,
                            column = q * call.stride_w - call.pad_w + j;
              if (row >= 0 && row < call.h && column >= 0 && column < call.w)
                cells.push_back(Cell(call, x, n, c, row, column));
            }
          At(result, n, (c * call.P() + p) * call.Q() + q) = pool(cells);
        }
  return result;
}

double ChannelSum(const Matrix& x, int64_t channels, int64_t k,
                  const std::function<double(int64_t n, int64_t column)>& term) {
  using Lanes = std::array<double, 8>;
  const int64_t cells = x.columns() / channels, granule = Granule(x.rows());
  std::vector<Lanes> leaves;
  for (int64_t n = 0; n < x.rows(); ++n) {
    if (n % granule == 0) leaves.emplace_back();
    for (int64_t j = 0; j < cells; ++j) leaves.back()[static_cast<size_t>(j % 8)] += term(n, k * cells + j);
  }
  const Lanes r = Tree(leaves, 0, leaves.size(), [](const Lanes& a, const Lanes& b) {
    Lanes sum;
    for (size_t lane = 0; lane < sum.size(); ++lane) sum[lane] = a[lane] + b[lane];
    return sum;
  });
  return ((r[0] + r[4]) + (r[2] + r[6])) + ((r[1] + r[5]) + (r[3] + r[7]));
}

}  // namespace

Matrix Conv2d(const ImageCall& call, const Matrix& x, const Matrix& filters) {
  Matrix result = *FilledMatrix(call.n, call.k * call.P() * call.Q(), 0);
  for (int64_t n = 0; n < call.n; ++n)
    for (int64_t k = 0; k < call.k; ++k)
      for (int64_t p = 0; p < call.P(); ++p)
        for (int64_t q = 0; q < call.Q(); ++q) {
          double sum = 0;
          for (int64_t c = 0; c < call.c; ++c)
            for (int64_t i = 0; i < call.r; ++i)
              for (int64_t j = 0; j < call.s; ++j)
                sum = std::fma(filters.At(k, (c * call.r + i) * call.s + j),
                               Cell(call, x, n, c, p * call.stride_h - call.pad_h + i,
                                    q * call.stride_w - call.pad_w + j),
                               sum);
          At(result, n, (k * call.P() + p) * call.Q() + q) = sum + 0.0;
        }
  return result;
}

Matrix Conv2dBackwardData(const ImageCall& call, const Matrix& filters, const Matrix& gradient) {
  Matrix result = *FilledMatrix(call.n, call.c * call.h * call.w, 0);
  for (int64_t n = 0; n < call.n; ++n)
    for (int64_t c = 0; c < call.c; ++c)
      for (int64_t i = 0; i < call.r; ++i)
        for (int64_t j = 0; j < call.s; ++j)
          for (int64_t p = 0; p < call.P(); ++p)
            for (int64_t q = 0; q < call.Q(); ++q) {
              const int64_t row = p * call.stride_h - call.pad_h + i,
                            column = q * call.stride_w - call.pad_w + j;
              if (row < 0 || row >= call.h || column < 0 || column >= call.w) continue;
              double sum = 0;
              for (int64_t k = 0; k < call.k; ++k)
                sum = std::fma(filters.At(k, (c * call.r + i) * call.s + j),
                               gradient.At(n, (k * call.P() + p) * call.Q() + q), sum);
              At(result, n, (c * call.h + row) * call.w + column) += sum + 0.0;
            }
  return result;
}

Matrix Conv2dBackwardFilter(const ImageCall& call, const Matrix& x, const Matrix& gradient) {
  Matrix result = *FilledMatrix(call.k, call.c * call.r * call.s, 0);
  for (int64_t k = 0; k < call.k; ++k)
    for (int64_t c = 0; c < call.c; ++c)
      for (int64_t i = 0; i < call.r; ++i)
        for (int64_t j = 0; j < call.s; ++j) {
          std::vector<double> panels;
          for (int64_t n = 0; n < call.n; ++n) {
            if (n % 8 == 0) panels.push_back(0);
            for (int64_t p = 0; p < call.P(); ++p)
              for (int64_t q = 0; q < call.Q(); ++q)
                panels.back() = std::fma(gradient.At(n, (k * call.P() + p) * call.Q() + q),
                                         Cell(call, x, n, c, p * call.stride_h - call.pad_h + i,
                                              q * call.stride_w - call.pad_w + j),
                                         panels.back());
          }
          At(result, k, (c * call.r + i) * call.s + j) =
              panels.empty() ? 0 : Join(panels, 0, panels.size()) + 0.0;
        }
  return result;
}

Matrix MaxPool(const ImageCall& call, const Matrix& x) {
  return Pool(call, x, [](const std::vector<double>& cells) {
    double most = std::numeric_limits<double>::lowest();
    for (const double cell : cells) {
      if (std::isnan(cell)) return cell;
      if (cell > most || (cell == 0 && most == 0 && std::signbit(most))) most = cell;
    }
    return most;
  });
}

Matrix AveragePool(const ImageCall& call, const Matrix& x) {
  return Pool(call, x, [&](const std::vector<double>& cells) {
    double sum = 0;
    for (const double cell : cells) sum += cell;
    return sum / static_cast<double>(call.r * call.s);
  });
}

// The column of x in which window (c, p, q) of image n has its most; kUnknown where all of it is padding.
int64_t PlaceOfMost(const ImageCall& call, const Matrix& x, int64_t n, int64_t c, int64_t p, int64_t q) {
  double most = std::numeric_limits<double>::lowest();
  int64_t place = kUnknown;
  for (int64_t i = 0; i < call.r; ++i)
    for (int64_t j = 0; j < call.s; ++j) {
      const int64_t row = p * call.stride_h - call.pad_h + i, column = q * call.stride_w - call.pad_w + j;
      if (row < 0 || row >= call.h || column < 0 || column >= call.w) continue;
      const double cell = Cell(call, x, n, c, row, column);
      if (!(cell > most)) continue;
      most = cell;
      place = (c * call.h + row) * call.w + column;
    }
  return place;
}

template <typename Body>
void ForWindows(const ImageCall& call, const Matrix& x, const Body& body) {
  for (int64_t n = 0; n < call.n; ++n)
    for (int64_t c = 0; c < call.c; ++c)
      for (int64_t p = 0; p < call.P(); ++p)
        for (int64_t q = 0; q < call.Q(); ++q)
          if (const int64_t place = PlaceOfMost(call, x, n, c, p, q); place != kUnknown)
            body(n, (c * call.P() + p) * call.Q() + q, place);
}

Matrix MaxPoolBackward(const ImageCall& call, const Matrix& x, const Matrix& gradient) {
  Matrix result = *FilledMatrix(call.n, call.c * call.h * call.w, 0);
  ForWindows(call, x,
             [&](int64_t n, int64_t k, int64_t place) { At(result, n, place) += gradient.At(n, k); });
  return result;
}

// Column (n, c, p, q) of MaxPoolBackward as a linear function of dout, times y.
Matrix MaxPoolAt(const ImageCall& call, const Matrix& x, const Matrix& y) {
  Matrix result = *FilledMatrix(call.n, call.c * call.P() * call.Q(), 0);
  ForWindows(call, x, [&](int64_t n, int64_t k, int64_t place) { At(result, n, k) = y.At(n, place); });
  return result;
}

Matrix AveragePoolBackward(const ImageCall& call, const Matrix&, const Matrix& gradient) {
  Matrix result = *FilledMatrix(call.n, call.c * call.h * call.w, 0);
  for (int64_t n = 0; n < call.n; ++n)
    for (int64_t c = 0; c < call.c; ++c)
      for (int64_t p = 0; p < call.P(); ++p)
        for (int64_t q = 0; q < call.Q(); ++q)
          for (int64_t i = 0; i < call.r; ++i)
            for (int64_t j = 0; j < call.s; ++j) {
              const int64_t row = p * call.stride_h - call.pad_h + i,
                            column = q * call.stride_w - call.pad_w + j;
              if (row < 0 || row >= call.h || column < 0 || column >= call.w) continue;
              At(result, n, (c * call.h + row) * call.w + column) +=
                  gradient.At(n, (c * call.P() + p) * call.Q() + q) / static_cast<double>(call.r * call.s);
            }
  return result;
}

Matrix Bias(const Matrix& x, const Matrix& bias, bool multiplies) {
  Matrix result = *FilledMatrix(x.rows(), x.columns(), 0);
  for (int64_t i = 0; i < x.rows(); ++i)
    for (int64_t j = 0; j < x.columns(); ++j) {
      const double of_channel = bias.At(j / (x.columns() / bias.rows()), 0);
      At(result, i, j) = multiplies ? x.At(i, j) * of_channel : x.At(i, j) + of_channel;
    }
  return result;
}

std::vector<Matrix> BatchNorm(const Matrix& x, const std::array<Matrix, 4>& columns, bool trains,
                              double epsilon, double momentum) {
  const auto& [gamma, beta, old_mean, old_variance] = columns;
  const int64_t channels = gamma.rows(), cells = x.columns() / channels;
  const double count = static_cast<double>(x.rows() * cells);
  std::vector<Matrix> results = {*FilledMatrix(x.rows(), x.columns(), 0)};
  for (int i = 0; i < 4; ++i) results.push_back(*FilledMatrix(channels, 1, 0));
  for (int64_t k = 0; k < channels; ++k) {
    double mean = old_mean.At(k, 0), variance = old_variance.At(k, 0);
    if (trains) {
      mean = ChannelSum(x, channels, k, [&](int64_t n, int64_t j) { return x.At(n, j); }) / count;
      variance = ChannelSum(x, channels, k,
                            [&](int64_t n, int64_t j) {
                              const double deviation = x.At(n, j) - mean;
                              return deviation * deviation;
                            }) /
                 count;
    }
    const double scale = 1 / std::sqrt(variance + epsilon);
    At(results[1], k, 0) = trains ? momentum * old_mean.At(k, 0) + (1 - momentum) * mean : mean;
    At(results[2], k, 0) = trains ? momentum * old_variance.At(k, 0) + (1 - momentum) * mean : variance;
    At(results[3], k, 0) = mean;
    At(results[4], k, 0) = scale;
    for (int64_t n = 0; n < x.rows(); ++n)
      for (int64_t j = k * cells; j < (k + 1) * cells; ++j)
        At(results[0], n, j) = (x.At(n, j) - mean) * scale * gamma.At(k, 0) + beta.At(k, 0);
  }
  return results;
}

std::vector<Matrix> BatchNormBackward(const Matrix& x, const Matrix& gradient, const Matrix& gamma,
                                      const Matrix& mean, const Matrix& scale) {
  const int64_t channels = gamma.rows(), cells = x.columns() / channels;
  const double count = static_cast<double>(x.rows() * cells);
  std::vector<Matrix> results = {*FilledMatrix(x.rows(), x.columns(), 0), *FilledMatrix(channels, 1, 0),
                                 *FilledMatrix(channels, 1, 0)};
  for (int64_t k = 0; k < channels; ++k) {
    const auto normal = [&](int64_t n, int64_t j) { return (x.At(n, j) - mean.At(k, 0)) * scale.At(k, 0); };
    const double of_gamma =
        ChannelSum(x, channels, k, [&](int64_t n, int64_t j) { return gradient.At(n, j) * normal(n, j); });
    const double of_beta =
        ChannelSum(x, channels, k, [&](int64_t n, int64_t j) { return gradient.At(n, j); });
    At(results[1], k, 0) = of_gamma;
    At(results[2], k, 0) = of_beta;
    for (int64_t n = 0; n < x.rows(); ++n)
      for (int64_t j = k * cells; j < (k + 1) * cells; ++j)
        At(results[0], n, j) = gamma.At(k, 0) * scale.At(k, 0) / count *
                               (count * gradient.At(n, j) - of_beta - normal(n, j) * of_gamma);
  }
  return results;
}

}  // namespace heddle::ops::reference
