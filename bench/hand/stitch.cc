// SPDX-License-Identifier: Apache-2.0
#include "bench/hand/stitch.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "bench/hand/functions.h"
#include "bench/hand/rows.h"
#include "bench/hand/slices.h"

namespace heddle::bench {
namespace {

constexpr int64_t kCells = 4096;  // Grain of a long row.

template <typename T>
const HandRows<T>& Rows();
template <>
const HandRows<double>& Rows<double>() {
  return RunsAvx512() ? kHandRowsAvx512 : kHandRowsAvx2;
}
template <>
const HandRows<float>& Rows<float>() {
  return RunsAvx512() ? kHandRowsSingleAvx512 : kHandRowsSingleAvx2;
}

// What the slices of a long row find, one by one.
template <typename T, typename Find>
std::vector<T> OfSlices(const Slices& slices, Find find) {
  std::vector<T> found(static_cast<size_t>(slices.size()));
  slices.Each([&](int64_t slice, int64_t begin, int64_t end) {
    if (begin < end) found[static_cast<size_t>(slice)] = find(begin, end - begin);
  });
  return found;
}
template <typename T, typename Find>
T SumOfSlices(const Slices& slices, Find find) {
  T sum = 0;
  for (const T part : OfSlices<T>(slices, find)) sum += part;
  return sum;
}

template <typename T>
void SoftmaxOfLongRow(const T* x, T* out, int64_t n) {
  const HandRows<T>& rows = Rows<T>();
  const Slices slices(n, kCells);
  const std::vector<T> highests =
      OfSlices<T>(slices, [&](int64_t j, int64_t count) { return rows.highest(x + j, count); });
  const T highest = *std::max_element(highests.begin(), highests.end());
  const T sum = SumOfSlices<T>(
      slices, [&](int64_t j, int64_t count) { return rows.exponentials(x + j, highest, out + j, count); });
  slices.Each([&](int64_t, int64_t begin, int64_t end) { rows.scale(out + begin, 1 / sum, end - begin); });
}

template <typename T>
void LayerNormOfLongRow(const T* x, const T* g, const T* b, T* out, int64_t n) {
  const HandRows<T>& rows = Rows<T>();
  const Slices slices(n, kCells);
  const auto count_of_row = static_cast<T>(n);
  const T mean =
      SumOfSlices<T>(slices, [&](int64_t j, int64_t count) { return rows.sum(x + j, count); }) / count_of_row;
  const T squares =
      SumOfSlices<T>(slices, [&](int64_t j, int64_t count) { return rows.squares(x + j, mean, count); });
  const T factor = 1 / std::sqrt(squares / count_of_row + static_cast<T>(1e-5));
  slices.Each([&](int64_t, int64_t j, int64_t end) {
    rows.normalise(x + j, mean, factor, g + j, b + j, out + j, end - j);
  });
}

// Calls run with a number of the type of x's cells.
template <typename Run>
void ByType(const Matrix& x, Run run) {
  x.element_type() == ElementType::kFloat64 ? run(double()) : run(float());
}

}  // namespace

void HandSoftmax(const Matrix& x, Matrix* out) {
  const auto run = [&](auto type) {
    using T = decltype(type);
    const int64_t n = x.columns();
    const T* const from = x.data<T>();
    T* const to = out->mutable_data<T>();
    if (x.rows() == 1) return SoftmaxOfLongRow(from, to, n);
    Slices(x.rows(), 1).Each([&](int64_t, int64_t begin, int64_t end) {
      Rows<T>().softmax(from + begin * n, to + begin * n, end - begin, n);
    });
  };
  ByType(x, run);
}

void HandLayerNorm(const Matrix& x, const Matrix& g, const Matrix& b, Matrix* out) {
  const auto run = [&](auto type) {
    using T = decltype(type);
    const int64_t n = x.columns();
    const T* const from = x.data<T>();
    T* const to = out->mutable_data<T>();
    if (x.rows() == 1) return LayerNormOfLongRow(from, g.data<T>(), b.data<T>(), to, n);
    Slices(x.rows(), 1).Each([&](int64_t, int64_t begin, int64_t end) {
      Rows<T>().layer_norm(from + begin * n, g.data<T>(), b.data<T>(), to + begin * n, end - begin, n);
    });
  };
  ByType(x, run);
}

}  // namespace heddle::bench
