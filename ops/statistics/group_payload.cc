// SPDX-License-Identifier: Apache-2.0
#include "ops/statistics/group_payload.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/simd/aggregate.h"

namespace heddle::ops {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// NaN if one of them is; -0.0 is below 0.0.
double Smaller(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return kNan;
  return a < b || (a == b && std::signbit(a)) ? a : b;
}
double Larger(double a, double b) { return -Smaller(-a, -b); }

// The cells of a row of x, zeros too.
const double* CellsOfRow(const Matrix& x, int64_t i, double* scratch) {
  if (!x.IsSparse()) return x.data() + i * x.columns();
  std::fill_n(scratch, x.columns(), 0.0);
  for (int64_t k = x.row_offsets()[i]; k < x.row_offsets()[i + 1]; ++k)
    scratch[x.column_indexes()[k]] = x.values()[k];
  return scratch;
}

double ToNearest(double x) { return x; }
double ToNearest(const WideNumber& x) { return x.ToNearestDouble(); }

double WeightOf(const double* weights, int64_t row) { return weights == nullptr ? 1.0 : weights[row]; }

}  // namespace

int64_t GroupPayload::width() const {
  switch (function_) {
    case GroupFunction::kSum:
    case GroupFunction::kMinimum:
    case GroupFunction::kMaximum: return columns_;
    case GroupFunction::kCount: return 1;
    case GroupFunction::kMean: return 1 + columns_;
    case GroupFunction::kVariance: return 1 + 2 * columns_;
    case GroupFunction::kCentralMoment: break;
  }
  return 1 + order_ * columns_;
}

template <typename Number>
void GroupPayload::MakeSums(const Matrix& x, const double* weights, const int64_t* rows, int64_t count,
                            Number* sums) const {
  std::fill_n(sums, columns_, Number(0.0));
  for (int64_t r = 0; r < count; ++r) {
    const Number weight = WeightOf(weights, rows[r]);
    if (x.IsSparse()) {
      for (int64_t k = x.row_offsets()[rows[r]]; k < x.row_offsets()[rows[r] + 1]; ++k)
        sums[x.column_indexes()[k]] = sums[x.column_indexes()[k]] + weight * x.values()[k];
    } else {
      const double* row = x.data() + rows[r] * columns_;
      for (int64_t j = 0; j < columns_; ++j) sums[j] = sums[j] + weight * row[j];
    }
  }
}

void GroupPayload::MakeExtremes(const Matrix& x, const double* weights, const int64_t* rows, int64_t count,
                                double* scratch, double* payload) const {
  for (int64_t r = 0; r < count; ++r) {
    const double weight = WeightOf(weights, rows[r]);
    const double* row = CellsOfRow(x, rows[r], scratch);
    for (int64_t j = 0; j < columns_; ++j) {
      const double cell = weight * row[j];
      if (r == 0)
        payload[j] = cell;
      else
        payload[j] =
            function_ == GroupFunction::kMinimum ? Smaller(payload[j], cell) : Larger(payload[j], cell);
    }
  }
}

template <typename Number>
void GroupPayload::AddDeviations(const double* row, double weight, Number* payload) const {
  const Number* means = payload + 1;
  Number* squares = payload + 1 + columns_;
  for (int64_t j = 0; j < columns_; ++j) {
    const Number d = row[j] - means[j];
    squares[j] = squares[j] + weight * (d * d);
    if (order_ >= 3) squares[columns_ + j] = squares[columns_ + j] + weight * (d * d * d);
    if (order_ >= 4) squares[2 * columns_ + j] = squares[2 * columns_ + j] + weight * ((d * d) * (d * d));
  }
}

template <typename Number>
void GroupPayload::Make(const Matrix& x, const double* weights, const int64_t* rows, int64_t count,
                        double* scratch, Number* payload) const {
  if (function_ == GroupFunction::kSum) return MakeSums(x, weights, rows, count, payload);
  if constexpr (std::is_same_v<Number, double>)
    if (function_ == GroupFunction::kMinimum || function_ == GroupFunction::kMaximum)
      return MakeExtremes(x, weights, rows, count, scratch, payload);
  payload[0] = 0.0;
  for (int64_t r = 0; r < count; ++r) payload[0] = payload[0] + WeightOf(weights, rows[r]);
  if (function_ == GroupFunction::kCount) return;
  MakeSums(x, weights, rows, count, payload + 1);
  if (function_ == GroupFunction::kMean) return;
  for (int64_t j = 0; j < columns_; ++j) payload[1 + j] = payload[1 + j] / payload[0];
  std::fill(payload + 1 + columns_, payload + width(), Number(0.0));
  for (int64_t r = 0; r < count; ++r)
    AddDeviations(CellsOfRow(x, rows[r], scratch), WeightOf(weights, rows[r]), payload);
}

void GroupPayload::MakeOfGroups(const Matrix& x, const double* weights, int64_t row_begin,
                                std::span<const int64_t> groups, std::span<const uint8_t> occurs,
                                double* payloads) const {
  const int64_t width = this->width();
  // Calls add(payload, row, weight) for each row of a group, in order.
  const auto for_each_row = [&](const auto& add) {
    for (size_t i = 0; i < groups.size(); ++i) {
      if (groups[i] < 0) continue;
      const int64_t row = row_begin + static_cast<int64_t>(i);
      add(payloads + groups[i] * width, x.data() + row * columns_, WeightOf(weights, row));
    }
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool is_minimum = function_ == GroupFunction::kMinimum;
  if (is_minimum || function_ == GroupFunction::kMaximum) {
    std::fill_n(payloads, static_cast<int64_t>(occurs.size()) * width, is_minimum ? kInfinity : -kInfinity);
    return for_each_row([&](double* payload, const double* row, double weight) {
      for (int64_t j = 0; j < columns_; ++j)
        payload[j] = is_minimum ? Smaller(payload[j], weight * row[j]) : Larger(payload[j], weight * row[j]);
    });
  }
  std::fill_n(payloads, static_cast<int64_t>(occurs.size()) * width, 0.0);
  if (function_ == GroupFunction::kCount)
    return for_each_row([](double* payload, const double*, double weight) { payload[0] += weight; });
  const bool has_total = function_ != GroupFunction::kSum;
  for_each_row([&](double* payload, const double* row, double weight) {
    if (has_total) *payload++ += weight;
    for (int64_t j = 0; j < columns_; ++j) payload[j] += weight * row[j];
  });
  if (!KeepsMoments()) return;
  for (size_t group = 0; group < occurs.size(); ++group) {
    double* const payload = payloads + static_cast<int64_t>(group) * width;
    for (int64_t j = 0; j < columns_ && occurs[group] != 0; ++j) payload[1 + j] /= payload[0];
  }
  for_each_row(
      [&](double* payload, const double* row, double weight) { AddDeviations(row, weight, payload); });
}

template <typename Number>
void GroupPayload::JoinMoments(Number* left, const Number* right) const {
  const Number a = left[0], b = right[0], n = a + b;
  const int64_t c = columns_;
  for (int64_t j = 1; j <= c; ++j) {
    const Number d = right[j] - left[j];
    const Number share = b / n, product = a * share;
    const Number left2 = left[c + j], right2 = right[c + j];
    if (order_ >= 4) {
      left[3 * c + j] = left[3 * c + j] + (right[3 * c + j] +
                                           (d * d) * (d * d) * (product * (a * a - a * b + b * b) / (n * n)) +
                                           6.0 * (d * d) * ((a * a * right2 + b * b * left2) / (n * n)) +
                                           4.0 * d * ((a * right[2 * c + j] - b * left[2 * c + j]) / n));
    }
    if (order_ >= 3) {
      left[2 * c + j] = left[2 * c + j] + (right[2 * c + j] + (d * d * d) * (product * (a - b) / n) +
                                           3.0 * d * ((a * right2 - b * left2) / n));
    }
    left[c + j] = (left2 + right2) + (d * d) * product;
    left[j] = left[j] + d * share;
  }
  left[0] = n;
}

template <typename Number>
void GroupPayload::Join(Number* left, const Number* right) const {
  if (KeepsMoments()) return JoinMoments(left, right);
  const int64_t n = width();
  for (int64_t k = 0; k < n; ++k) {
    if constexpr (std::is_same_v<Number, double>) {
      if (function_ == GroupFunction::kMinimum || function_ == GroupFunction::kMaximum) {
        left[k] =
            function_ == GroupFunction::kMinimum ? Smaller(left[k], right[k]) : Larger(left[k], right[k]);
        continue;
      }
    }
    left[k] = left[k] + right[k];
  }
}

template <typename Number>
void GroupPayload::Finish(const Number* payload, double* results) const {
  for (int64_t j = 0; j < columns_; ++j) {
    WideNumber result;
    switch (function_) {
      case GroupFunction::kSum:
      case GroupFunction::kMinimum:
      case GroupFunction::kMaximum: result = payload[j]; break;
      case GroupFunction::kCount: result = payload[0]; break;
      case GroupFunction::kMean: results[j] = ToNearest(payload[1 + j] / payload[0]); continue;
      case GroupFunction::kVariance: {
        const Number degrees = payload[0] - 1.0;
        result = WideNumber(degrees).ToDouble() == 0 ? Number(0.0) : payload[1 + columns_ + j] / degrees;
        break;
      }
      case GroupFunction::kCentralMoment:
        result = payload[1 + (order_ - 1) * columns_ + j] / payload[0];
        break;
    }
    results[j] = result.ToDouble();
  }
}

template void GroupPayload::Make(const Matrix&, const double*, const int64_t*, int64_t, double*,
                                 double*) const;
template void GroupPayload::Make(const Matrix&, const double*, const int64_t*, int64_t, double*,
                                 WideNumber*) const;
template void GroupPayload::Finish(const double*, double*) const;
template void GroupPayload::Finish(const WideNumber*, double*) const;

double GroupPayload::Absent() const { return function_ == GroupFunction::kCentralMoment ? kNan : 0; }

template <typename Number>
Number* GroupTree<Number>::Next(int64_t panel) {
  const auto level = [](int64_t a, int64_t b) {
    return static_cast<int>(std::bit_width(static_cast<uint64_t>(a ^ b)));
  };
  while (panels_.size() > 1) {
    const int64_t before = panels_[panels_.size() - 2], last = panels_.back();
    // The node that holds both: complete if the new panel is not in it, and no panel outside of ours is.
    const int height = level(before, last);
    const int64_t begin = (before >> height) << height;
    const bool is_ours = begin >= first_ && begin + (int64_t{1} << height) <= last_;
    if (height >= level(last, panel) || !is_ours) break;
    JoinLast();
  }
  next_ = panel;
  memory_.resize((panels_.size() + 1) * static_cast<size_t>(width_));
  return memory_.data() + static_cast<int64_t>(panels_.size()) * width_;
}

template <typename Number>
void GroupTree<Number>::JoinLast() {
  Number* left = memory_.data() + (Nodes() - 2) * width_;
  payload_.Join(left, left + width_);
  panels_.pop_back();
}

template <typename Number>
const Number* GroupTree<Number>::Root() {
  if (panels_.empty()) return nullptr;
  while (panels_.size() > 1) JoinLast();
  return memory_.data();
}

template class GroupTree<double>;
template class GroupTree<WideNumber>;

void TakeWideResults(const GroupPayload& payload, const WideNumber* root, const std::vector<bool>& finite,
                     double* results) {
  std::vector<double> wide(finite.size());
  payload.Finish(root, wide.data());
  for (size_t j = 0; j < finite.size(); ++j)
    if (finite[j] && !std::isfinite(results[j])) results[j] = wide[j];
}

bool AllFinite(const double* numbers, int64_t count) {
  return simd::FindNonFinite(numbers, 0, count) == count;
}

}  // namespace heddle::ops
