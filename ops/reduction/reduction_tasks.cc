// SPDX-License-Identifier: Apache-2.0
#include "ops/reduction/reduction_tasks.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "ops/base/parallel.h"

namespace heddle::ops {
namespace {

// Joining wide payloads is itself parallel, in pieces of this size.
constexpr int64_t kJoinGrain = 1 << 16;

}  // namespace

double BytesAtWork(double payload_bytes, int64_t granules, int threads) {
  constexpr double kTileBytes = double{8} * (1 << 16);
  constexpr int64_t kMostLeavesOfGranule = 8192;
  const bool is_wide = payload_bytes > kTileBytes;
  const int64_t leaves = is_wide ? granules : granules * kMostLeavesOfGranule;
  const auto width = static_cast<int64_t>(std::min(payload_bytes, 1e15) / 8);
  const auto tasks = static_cast<double>(is_wide ? 0 : std::min(leaves, MostTasks(width)));
  const auto levels =
      static_cast<double>(std::bit_width(static_cast<uint64_t>(std::max<int64_t>(1, leaves))));
  return tasks * payload_bytes + threads * (levels + 2) * std::min(payload_bytes, kTileBytes);
}

void JoinWide(const Joins& joins, double* left, const double* right, int64_t width) {
  if (joins == Join::kMoments || width <= kJoinGrain) return JoinPayloads(joins, left, right, width);
  ParallelFor(width, kJoinGrain, [&](int64_t begin, int64_t end) {
    JoinPayloads(joins, left + begin, right + begin, end - begin);
  });
}

void CopyWide(const double* from, int64_t width, double* to) {
  ParallelFor(width, kJoinGrain,
              [&](int64_t begin, int64_t end) { std::copy(from + begin, from + end, to + begin); });
}

Result<Matrix> PartialMatrix(const std::vector<TreeNode>& nodes, int64_t width) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix partial, Matrix::Dense(static_cast<int64_t>(nodes.size()), 2 + width));
  for (size_t i = 0; i < nodes.size(); ++i) {
    double* row = partial.mutable_data() + static_cast<int64_t>(i) * (2 + width);
    row[0] = static_cast<double>(nodes[i].index);
    row[1] = nodes[i].level;
  }
  return partial;
}

Result<ReductionTasks> ReductionTasks::Divide(const Reduction& reduction, int64_t begin, int64_t end,
                                              int level) {
  return Divide(reduction, CoveringNodes(begin, end), level);
}

Result<ReductionTasks> ReductionTasks::Divide(const Reduction& reduction, std::vector<TreeNode> nodes,
                                              int level) {
  ReductionTasks division(reduction);
  division.level_ = level;
  division.nodes_ = std::move(nodes);
  HEDDLE_ASSIGN_OR_RETURN(division.partial_, PartialMatrix(division.nodes_, reduction.width));
  for (const TreeNode& node : division.nodes_) {
    const int down = std::max(0, node.level - level);
    for (int64_t i = 0; i < (int64_t{1} << down); ++i)
      division.tasks_.push_back({(node.index << down) + i, node.level - down});
  }
  HEDDLE_ASSIGN_OR_RETURN(division.payloads_, Matrix::Dense(division.size(), division.stride_));
  division.first_payload_ = division.payloads_.mutable_data();
  return division;
}

Result<Matrix> ReductionTasks::Close() {
  if (IsCancelled(reduction_.cancelled)) return Cancelled("cancelled");
  const int64_t width = reduction_.width;
  double* piece = first_payload_;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const int64_t pieces = int64_t{1} << std::max(0, nodes_[i].level - level_);
    for (int64_t step = 1; step < pieces; step *= 2)
      for (int64_t p = 0; p + step < pieces; p += 2 * step)
        JoinWide(reduction_.join, piece + p * stride_, piece + (p + step) * stride_, width);
    CopyWide(piece, width, partial_.mutable_data() + static_cast<int64_t>(i) * (2 + width) + 2);
    piece += pieces * stride_;
  }
  return std::move(partial_);
}

}  // namespace heddle::ops
