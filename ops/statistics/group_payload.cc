// SPDX-License-Identifier: Apache-2.0
#include "ops/statistics/group_payload.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

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

void GroupPayload::MakeSums(const Matrix& x, const double* weights, const int64_t* rows, int64_t count,
                            double* sums) const {
  std::fill_n(sums, columns_, 0.0);
  for (int64_t r = 0; r < count; ++r) {
    const double weight = WeightOf(weights, rows[r]);
    if (x.IsSparse()) {
      for (int64_t k = x.row_offsets()[rows[r]]; k < x.row_offsets()[rows[r] + 1]; ++k)
        sums[x.column_indexes()[k]] += weight * x.values()[k];
    } else {
      const double* row = x.data() + rows[r] * columns_;
      for (int64_t j = 0; j < columns_; ++j) sums[j] += weight * row[j];
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

void GroupPayload::AddDeviations(const double* row, double weight, double* payload) const {
  const double* means = payload + 1;
  double* squares = payload + 1 + columns_;
  for (int64_t j = 0; j < columns_; ++j) {
    const double d = row[j] - means[j];
    squares[j] += weight * (d * d);
    if (order_ >= 3) squares[columns_ + j] += weight * (d * d * d);
    if (order_ >= 4) squares[2 * columns_ + j] += weight * ((d * d) * (d * d));
  }
}

void GroupPayload::Make(const Matrix& x, const double* weights, const int64_t* rows, int64_t count,
                        double* scratch, double* payload) const {
  switch (function_) {
    case GroupFunction::kSum: return MakeSums(x, weights, rows, count, payload);
    case GroupFunction::kMinimum:
    case GroupFunction::kMaximum: return MakeExtremes(x, weights, rows, count, scratch, payload);
    default: break;
  }
  payload[0] = 0;
  for (int64_t r = 0; r < count; ++r) payload[0] += WeightOf(weights, rows[r]);
  if (function_ == GroupFunction::kCount) return;
  MakeSums(x, weights, rows, count, payload + 1);
  if (function_ == GroupFunction::kMean) return;
  for (int64_t j = 0; j < columns_; ++j) payload[1 + j] /= payload[0];
  std::fill(payload + 1 + columns_, payload + width(), 0.0);
  for (int64_t r = 0; r < count; ++r)
    AddDeviations(CellsOfRow(x, rows[r], scratch), WeightOf(weights, rows[r]), payload);
}

void GroupPayload::JoinMoments(double* left, const double* right) const {
  const double a = left[0], b = right[0], n = a + b;
  const int64_t c = columns_;
  for (int64_t j = 1; j <= c; ++j) {
    const double d = right[j] - left[j];
    const double share = b / n, product = a * share;
    const double left2 = left[c + j], right2 = right[c + j];
    if (order_ >= 4) {
      left[3 * c + j] += right[3 * c + j] +
                         (d * d) * (d * d) * (product * (a * a - a * b + b * b) / (n * n)) +
                         6 * (d * d) * ((a * a * right2 + b * b * left2) / (n * n)) +
                         4 * d * ((a * right[2 * c + j] - b * left[2 * c + j]) / n);
    }
    if (order_ >= 3) {
      left[2 * c + j] +=
          right[2 * c + j] + (d * d * d) * (product * (a - b) / n) + 3 * d * ((a * right2 - b * left2) / n);
    }
    left[c + j] = (left2 + right2) + (d * d) * product;
    left[j] += d * share;
  }
  left[0] = n;
}

void GroupPayload::Join(double* left, const double* right) const {
  if (KeepsMoments()) return JoinMoments(left, right);
  const int64_t n = width();
  for (int64_t k = 0; k < n; ++k) {
    if (function_ == GroupFunction::kMinimum)
      left[k] = Smaller(left[k], right[k]);
    else if (function_ == GroupFunction::kMaximum)
      left[k] = Larger(left[k], right[k]);
    else
      left[k] += right[k];
  }
}

void GroupPayload::Finish(const double* payload, double* results) const {
  for (int64_t j = 0; j < columns_; ++j) {
    switch (function_) {
      case GroupFunction::kSum:
      case GroupFunction::kMinimum:
      case GroupFunction::kMaximum: results[j] = payload[j]; break;
      case GroupFunction::kCount: results[j] = payload[0]; break;
      case GroupFunction::kMean: results[j] = payload[1 + j] / payload[0]; break;
      case GroupFunction::kVariance:
        results[j] = payload[0] == 1 ? 0 : payload[1 + columns_ + j] / (payload[0] - 1);
        break;
      case GroupFunction::kCentralMoment:
        results[j] = payload[1 + (order_ - 1) * columns_ + j] / payload[0];
        break;
    }
  }
}

double GroupPayload::Absent() const { return function_ == GroupFunction::kCentralMoment ? kNan : 0; }

double* GroupTree::Next(int64_t panel) {
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

void GroupTree::JoinLast() {
  double* left = memory_.data() + (Nodes() - 2) * width_;
  payload_.Join(left, left + width_);
  panels_.pop_back();
}

const double* GroupTree::Root() {
  if (panels_.empty()) return nullptr;
  while (panels_.size() > 1) JoinLast();
  return memory_.data();
}

}  // namespace heddle::ops
