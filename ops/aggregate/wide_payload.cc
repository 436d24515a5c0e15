// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate/wide_payload.h"

#include <atomic>

#include "ops/base/parallel.h"
#include "ops/simd/aggregate.h"

namespace heddle::ops {

WidePayload JoinPayloads(bool moments, WidePayload a, const WidePayload& b) {
  const size_t half = a.numbers.size() / 2;
  if (!moments) {
    for (size_t i = 0; i < a.numbers.size(); ++i) a.numbers[i] = a.numbers[i] + b.numbers[i];
    return a;
  }
  const double count = a.count + b.count, share = b.count / count, weight = a.count * share;
  for (size_t i = 0; i < half; ++i) {
    const WideNumber delta = b.numbers[i] - a.numbers[i];
    a.numbers[i] = a.numbers[i] + delta * share;
    a.numbers[half + i] = (a.numbers[half + i] + b.numbers[half + i]) + (delta * delta) * weight;
  }
  a.count = count;
  return a;
}

WideNumber JoinLanes(const std::vector<WideNumber>& numbers, size_t k, size_t results) {
  if (numbers.size() == results) return numbers[k];
  const auto r = [&](size_t lane) { return numbers[lane * results + k]; };
  return ((r(0) + r(4)) + (r(2) + r(6))) + ((r(1) + r(5)) + (r(3) + r(7)));
}

template <typename Term>
std::vector<WideNumber> WideLeaves::Sum(const LeafCells& cells, const Term& term) const {
  const auto results = static_cast<int64_t>(columns_.size());
  std::vector<WideNumber> sums(static_cast<size_t>(lanes_ * results));
  const auto add = [&](int64_t row, int64_t k, double x) {
    WideNumber& sum = sums[static_cast<size_t>(row % lanes_ * results + k)];
    sum = sum + term(x, static_cast<size_t>(k));
  };
  if (!cells.is_sparse) {
    for (int64_t i = 0; i < cells.rows; ++i)
      for (int64_t k = 0; k < results; ++k)
        add(i, k, cells.values[i * all_ + columns_[static_cast<size_t>(k)]]);
    return sums;
  }
  for (int64_t c = 0; c < cells.count; ++c) {
    const int64_t k = all_ == 1 ? 0 : number_of_[static_cast<size_t>(cells.places[c] % all_)];
    if (k >= 0) add(cells.places[c] / all_, k, cells.values[c]);
  }
  return sums;
}

WidePayload WideLeaves::Make(const LeafCells& cells) const {
  WidePayload payload{static_cast<double>(cells.rows), Sum(cells, [](double x, size_t) { return x; })};
  if (!moments_) return payload;
  const size_t results = columns_.size();
  std::vector<WideNumber> means;
  for (size_t k = 0; k < results; ++k)
    means.push_back(JoinLanes(payload.numbers, k, results) / payload.count);
  const std::vector<WideNumber> squares = Sum(cells, [&](double x, size_t k) {
    const WideNumber d = WideNumber(x) - means[k];
    return d * d;
  });
  payload.numbers = means;
  for (size_t k = 0; k < results; ++k) payload.numbers.push_back(JoinLanes(squares, k, results));
  return payload;
}

double ResultOf(AggregateKind kind, const WidePayload& root, size_t k, size_t results, double cells) {
  if (!IsSpread(kind)) {
    const WideNumber sum = JoinLanes(root.numbers, k, results);
    // A mean of doubles is one, whatever a rounding adds to the largest.
    return kind == AggregateKind::kMean ? (sum / cells).ToNearestDouble() : sum.ToDouble();
  }
  if (root.count < 2) return SpreadOf(kind, root.count, 0.0);
  const WideNumber variance = root.numbers[results + k] / (root.count - 1.0);
  return kind == AggregateKind::kDeviation ? SquareRoot(variance).ToDouble() : variance.ToDouble();
}

bool AreFinite(const double* numbers, int64_t count) {
  if (count <= kCellsOfTask) return simd::FindNonFinite(numbers, 0, count) == count;
  std::atomic<bool> finite = true;
  ParallelFor(count, kCellsOfTask, [&](int64_t begin, int64_t end) {
    if (simd::FindNonFinite(numbers, begin, end) < end) finite = false;
  });
  return finite;
}

}  // namespace heddle::ops
