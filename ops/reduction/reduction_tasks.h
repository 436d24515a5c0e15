// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "ops/reduction/reduction_tree.h"

// How a run of leaves becomes tasks and a partial value: what dense and sparse payloads share.
namespace heddle::ops {

/// A task should be worth about this many cells.
inline constexpr int64_t kCellsOfTask = 1 << 18;
/// The most tasks of payloads of `width` doubles: enough to balance the threads, and not more than memory
/// should hold of payloads.
inline int64_t MostTasks(int64_t width) {
  constexpr int64_t kMost = 256, kMostPayloads = 1 << 22;
  return std::clamp<int64_t>(kMostPayloads / std::max<int64_t>(width, 1), 8, kMost);
}

/// About the most bytes that `threads` hold of payloads of `payload_bytes` each while they reduce so many
/// granules of rows, beside the nodes that they make: a payload for each task, and for each thread those that
/// wait for what comes behind them. Wide ones are computed tile by tile.
double BytesAtWork(double payload_bytes, int64_t granules, int threads);

/// Nodes, mostly those that cover a run of leaves, those above a level divided into their descendants of that
/// level; a task is one of them. Every task fills its payload; then Close() joins the pieces of each node.
class ReductionTasks {
 public:
  /// kResourceExhausted when the payloads of the nodes do not fit.
  static Result<ReductionTasks> Divide(const Reduction& reduction, int64_t begin, int64_t end, int level);
  static Result<ReductionTasks> Divide(const Reduction& reduction, std::vector<TreeNode> nodes, int level);

  int64_t size() const { return static_cast<int64_t>(tasks_.size()); }
  const TreeNode& operator[](int64_t i) const { return tasks_[static_cast<size_t>(i)]; }
  /// Where task i writes its payload; uninitialised.
  double* Payload(int64_t i) { return first_payload_ + i * stride_; }
  /// The partial value, one row per node. kCancelled when cancelled.
  Result<Matrix> Close();

 private:
  explicit ReductionTasks(const Reduction& reduction)
      : reduction_(reduction), stride_((reduction.width + 7) / 8 * 8) {}
  Reduction reduction_;
  int64_t stride_;
  int level_ = 0;
  std::vector<TreeNode> nodes_;
  std::vector<TreeNode> tasks_;
  // A row for each task, of the pool of matrices: pages that malloc gives back would be touched for the first
  // time by every kernel.
  Matrix payloads_;
  double* first_payload_ = nullptr;
  Matrix partial_;
};

/// A partial value with its (index, level) columns written and its payloads uninitialised.
Result<Matrix> PartialMatrix(const std::vector<TreeNode>& nodes, int64_t width);

/// JoinPayloads, and a copy; wide ones in parallel.
void JoinWide(const Joins& joins, double* left, const double* right, int64_t width);
void CopyWide(const double* from, int64_t width, double* to);

}  // namespace heddle::ops
