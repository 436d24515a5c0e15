// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/values/matrix.h"

// What aggregate() keeps of the rows of a group (ops/statistics/group_aggregate.cc).
namespace heddle::ops {

enum class GroupFunction : uint8_t { kSum, kCount, kMean, kVariance, kMinimum, kMaximum, kCentralMoment };

/// A payload: the numbers from which the results of a group can be told, and which can be joined with those
/// of other rows of the group. Its layout, for c columns:
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

  int64_t width() const;
  /// True if no row of the group is in it, as the language has it: its weights are all 0.
  bool IsEmpty(const double* payload) const { return KeepsMoments() && payload[0] == 0; }

  /// Of these rows of x, in this order; `weights` may be nullptr, `scratch` has room for a row of x.
  void Make(const Matrix& x, const double* weights, const int64_t* rows, int64_t count, double* scratch,
            double* payload) const;
  /// left = left joined with right, which holds later rows. Moments by Pebay's formulas (Formulas for robust,
  /// one-pass parallel computation of covariances and arbitrary-order statistical moments, Sandia report
  /// SAND2008-6212, 2008).
  void Join(double* left, const double* right) const;
  /// The results, a cell for each column.
  void Finish(const double* payload, double* results) const;
  /// The result of a group without rows.
  double Absent() const;

 private:
  bool KeepsMoments() const {
    return function_ == GroupFunction::kVariance || function_ == GroupFunction::kCentralMoment;
  }
  void MakeSums(const Matrix& x, const double* weights, const int64_t* rows, int64_t count,
                double* sums) const;
  void MakeExtremes(const Matrix& x, const double* weights, const int64_t* rows, int64_t count,
                    double* scratch, double* payload) const;
  void AddDeviations(const double* row, double weight, double* payload) const;
  void JoinMoments(double* left, const double* right) const;

  GroupFunction function_;
  int order_;  // Of the central moment.
  int64_t columns_;
};

/// Joins the payloads of panels, given in ascending order of panels, along the tree of docs/numerics.md,
/// section 2. Panels that are not given change nothing.
class GroupTree {
 public:
  /// Joins only nodes of the tree that lie in panels [first, last), so that what is before and behind them
  /// can still be joined in its place.
  GroupTree(const GroupPayload& payload, int64_t first, int64_t last)
      : payload_(payload), width_(payload.width()), first_(first), last_(last) {}

  /// Where to write the payload of `panel`, or of a node that holds it; Push() when it is written.
  double* Next(int64_t panel);
  void Push() { panels_.push_back(next_); }
  /// The nodes that are left, ascending: a panel in each, and its payload.
  int64_t Nodes() const { return static_cast<int64_t>(panels_.size()); }
  int64_t PanelOf(int64_t node) const { return panels_[static_cast<size_t>(node)]; }
  const double* PayloadOf(int64_t node) const { return memory_.data() + node * width_; }
  /// All joined, also nodes that are not within [first, last). nullptr if there were none.
  const double* Root();
  void Clear() { panels_.clear(); }

 private:
  void JoinLast();

  const GroupPayload& payload_;
  int64_t width_, first_, last_;
  int64_t next_ = 0;
  std::vector<int64_t> panels_;
  std::vector<double> memory_;
};

}  // namespace heddle::ops
