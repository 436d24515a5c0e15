// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/values/matrix.h"
#include "ops/reduction/wide_number.h"

// What aggregate() keeps of the rows of a group (ops/statistics/group_aggregate.cc).
namespace heddle::ops {

enum class GroupFunction : uint8_t { kSum, kCount, kMean, kVariance, kMinimum, kMaximum, kCentralMoment };

/// A payload: the numbers from which the results of a group can be told, and which can be joined with those
/// of other rows of the group; doubles, or wide numbers for sums that leave their range (docs/numerics.md,
/// section 3). Its layout, for c columns:
///   sum, minimum, maximum    c cells
///   count                    the sum of the weights
///   mean                     the sum of the weights, c sums
///   variance, centralmoment  the sum of the weights, c means, c sums of squared deviations from the mean,
///   for
///                            orders above 2 also of cubed and of fourth powers (M3, M4)
class GroupPayload {
 public:
  GroupPayload(GroupFunction function, int order, int64_t columns)
      : function_(function), order_(order), columns_(columns) {}

  GroupFunction function() const { return function_; }
  int64_t width() const;
  /// True if some of it is a sum of cells.
  bool AddsUp() const {
    return function_ == GroupFunction::kSum || function_ == GroupFunction::kMean || KeepsMoments();
  }
  /// The column of x that place `place` is about; -1 for the weights.
  int64_t ColumnOf(int64_t place) const {
    return function_ == GroupFunction::kMean || KeepsMoments() ? (place == 0 ? -1 : (place - 1) % columns_)
                                                               : place;
  }
  /// True if no row of the group is in it, as the language has it: its weights are all 0.
  template <typename Number>
  bool IsEmpty(const Number* payload) const {
    return KeepsMoments() && WideNumber(payload[0]).ToDouble() == 0;
  }

  /// Of these rows of x, in this order; `weights` may be nullptr, `scratch` has room for a row of x.
  /// Minima and maxima are doubles.
  template <typename Number>
  void Make(const Matrix& x, const double* weights, const int64_t* rows, int64_t count, double* scratch,
            Number* payload) const;
  /// The same for all groups at once, of rows row_begin, row_begin + 1, ... of a dense x: row i is of group
  /// groups[i], or of none where that is -1. `payloads` has width() cells for each group of `occurs`.
  void MakeOfGroups(const Matrix& x, const double* weights, int64_t row_begin,
                    std::span<const int64_t> groups, std::span<const uint8_t> occurs, double* payloads) const;
  /// left = left joined with right, which holds later rows. Moments by Pebay's formulas (Formulas for robust,
  /// one-pass parallel computation of covariances and arbitrary-order statistical moments, Sandia report
  /// SAND2008-6212, 2008).
  template <typename Number>
  void Join(Number* left, const Number* right) const;
  /// The results, a cell for each column.
  template <typename Number>
  void Finish(const Number* payload, double* results) const;
  /// The result of a group without rows.
  double Absent() const;

 private:
  bool KeepsMoments() const {
    return function_ == GroupFunction::kVariance || function_ == GroupFunction::kCentralMoment;
  }
  template <typename Number>
  void MakeSums(const Matrix& x, const double* weights, const int64_t* rows, int64_t count,
                Number* sums) const;
  void MakeExtremes(const Matrix& x, const double* weights, const int64_t* rows, int64_t count,
                    double* scratch, double* payload) const;
  template <typename Number>
  void AddDeviations(const double* row, double weight, Number* payload) const;
  template <typename Number>
  void JoinMoments(Number* left, const Number* right) const;

  GroupFunction function_;
  int order_;  // Of the central moment.
  int64_t columns_;
};

/// Puts results of wide numbers where those of doubles are infinite or NaN though all cells of the column are
/// finite.
void TakeWideResults(const GroupPayload& payload, const WideNumber* root, const std::vector<bool>& finite,
                     double* results);
bool AllFinite(const double* numbers, int64_t count);

/// Joins the payloads of panels, given in ascending order of panels, along the tree of docs/numerics.md,
/// section 2. Panels that are not given change nothing.
template <typename Number>
class GroupTree {
 public:
  /// Joins only nodes of the tree that lie in panels [first, last), so that what is before and behind them
  /// can still be joined in its place.
  GroupTree(const GroupPayload& payload, int64_t first, int64_t last)
      : payload_(payload), width_(payload.width()), first_(first), last_(last) {}

  /// Where to write the payload of `panel`, or of a node that holds it; Push() when it is written.
  Number* Next(int64_t panel);
  void Push() { panels_.push_back(next_); }
  /// The nodes that are left, ascending: a panel in each, and its payload.
  int64_t Nodes() const { return static_cast<int64_t>(panels_.size()); }
  int64_t PanelOf(int64_t node) const { return panels_[static_cast<size_t>(node)]; }
  const Number* PayloadOf(int64_t node) const { return memory_.data() + node * width_; }
  /// All joined, also nodes that are not within [first, last). nullptr if there were none.
  const Number* Root();
  void Clear() { panels_.clear(); }

 private:
  void JoinLast();

  const GroupPayload& payload_;
  int64_t width_, first_, last_;
  int64_t next_ = 0;
  std::vector<int64_t> panels_;
  std::vector<Number> memory_;
};

}  // namespace heddle::ops
