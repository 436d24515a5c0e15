// SPDX-License-Identifier: Apache-2.0
#include "ops/reduction/reduction_tree.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#include "core/values/panels.h"
#include "ops/base/parallel.h"
#include "ops/reduction/reduce_ranges.h"
#include "ops/reduction/reduction_tasks.h"
#include "ops/simd/aggregate.h"

namespace heddle::ops {
namespace {

// What changes nothing when it is joined; moments of no leaves count nothing.
double IdentityOf(Join join) {
  switch (join) {
    case Join::kProduct: return simd::StartOf(simd::Fold::kMultiply);
    case Join::kMinimum: return simd::StartOf(simd::Fold::kMinimum);
    case Join::kMaximum: return simd::StartOf(simd::Fold::kMaximum);
    default: return 0.0;
  }
}

// The node over leaves [begin, end), serially: its payload ends in `payload`.
void ReduceNode(const Reduction& reduction, int64_t begin, int64_t end, const LeafFunction& leaf,
                PayloadStack& stack, double* payload) {
  for (int64_t i = begin; i < end && !IsCancelled(reduction.cancelled); ++i)
    if (leaf(i, stack.Next(i))) stack.Push();
  if (const double* root = stack.Finish())
    std::memcpy(payload, root, static_cast<size_t>(reduction.width) * sizeof(double));
  else
    FillIdentity(reduction, payload);
}

// Of the nodes that tasks compute.
int LevelOfTasks(const Reduction& reduction, int64_t leaves) {
  const int64_t width = reduction.width;
  int level = 0;
  while ((std::max<int64_t>(reduction.leaf_cells, width) << level) < kCellsOfTask ||
         (leaves >> level) > MostTasks(width))
    ++level;
  return level;
}

}  // namespace

void FillPayload(double* payload, int64_t width, double value) {
  const __m256d four = _mm256_set1_pd(value);
  int64_t i = 0;
  for (; i + 4 <= width; i += 4) _mm256_storeu_pd(payload + i, four);
  for (; i < width; ++i) payload[i] = value;
}

std::vector<TreeNode> CoveringNodes(int64_t begin, int64_t end) {
  std::vector<TreeNode> nodes;
  while (begin < end) {
    int level = begin == 0 ? 62 : std::countr_zero(static_cast<uint64_t>(begin));
    while ((int64_t{1} << level) > end - begin) --level;
    nodes.push_back({begin >> level, level});
    begin += int64_t{1} << level;
  }
  return nodes;
}

void FillIdentity(const Reduction& reduction, double* payload) {
  if (reduction.join.count == 1)
    return FillPayload(payload, reduction.width, IdentityOf(reduction.join.of_eights[0]));
  for (int i = 0; i < reduction.join.count; ++i)
    FillPayload(payload + 8 * i, 8, IdentityOf(reduction.join.of_eights[static_cast<size_t>(i)]));
}

void JoinPayloads(const Joins& joins, double* left, const double* right, int64_t width) {
  if (joins.count > 1) {
    for (int i = 0; i < joins.count; ++i)
      JoinPayloads(joins.of_eights[static_cast<size_t>(i)], left + 8 * i, right + 8 * i, 8);
    return;
  }
  switch (joins.of_eights[0]) {
    case Join::kSum: return simd::FoldColumns(simd::Fold::kAdd, right, 1, width, width, left);
    case Join::kProduct: return simd::FoldColumns(simd::Fold::kMultiply, right, 1, width, width, left);
    case Join::kMinimum: return simd::FoldColumns(simd::Fold::kMinimum, right, 1, width, width, left);
    case Join::kMaximum: return simd::FoldColumns(simd::Fold::kMaximum, right, 1, width, width, left);
    case Join::kMoments: {
      const int64_t w = (width - 1) / 2;
      const double count = left[0] + right[0];
      const double share = right[0] / count;
      const double weight = left[0] * share;
      for (int64_t i = 1; i <= w; ++i) {
        const double delta = right[i] - left[i];
        left[i] = left[i] + delta * share;
        left[w + i] = (left[w + i] + right[w + i]) + (delta * delta) * weight;
      }
      left[0] = count;
      return;
    }
  }
}

AlignedArray::AlignedArray(int64_t size) {
  const size_t bytes = static_cast<size_t>((std::max<int64_t>(size, 1) + 7) / 8 * 64);
  data_.reset(static_cast<double*>(std::aligned_alloc(64, bytes)));
  if (data_ == nullptr) throw std::bad_alloc();
}
void AlignedArray::Free::operator()(double* data) const { std::free(data); }

PayloadStack::PayloadStack(const Joins& joins, int64_t width, int max_level)
    : joins_(joins), width_(width), stride_((width + 7) / 8 * 8), memory_((max_level + 2) * stride_) {}

void PayloadStack::JoinTop() {
  JoinPayloads(joins_, Row(depth_ - 2), Row(depth_ - 1), width_);
  --depth_;
}

double* PayloadStack::Next(int64_t leaf) {
  while (depth_ >= 2 &&
         CommonLevel(leaves_[depth_ - 2], leaves_[depth_ - 1]) < CommonLevel(leaves_[depth_ - 1], leaf))
    JoinTop();
  next_leaf_ = leaf;
  return Row(depth_);
}

const double* PayloadStack::Finish() {
  if (depth_ == 0) return nullptr;
  while (depth_ > 1) JoinTop();
  depth_ = 0;
  return Row(0);
}

namespace {

// Of the leaves of each node one after the other.
NodeTaskFunction NodesOfLeaves(const Reduction& reduction, const TaskFunction& task) {
  return [&](int max_level) -> NodeFunction {
    return [&, leaf = task(),
            stack = std::make_shared<PayloadStack>(reduction.join, reduction.width, max_level)](
               int64_t first, int64_t last, double* payload) {
      ReduceNode(reduction, first, last, leaf, *stack, payload);
    };
  };
}

Result<Matrix> RunTasks(ReductionTasks tasks, int level, const NodeTaskFunction& task) {
  ParallelFor(tasks.size(), 1, [&](int64_t first, int64_t last) {
    const NodeFunction node = task(level);
    for (int64_t i = first; i < last; ++i)
      node(tasks[i].FirstLeaf(), (tasks[i].index + 1) << tasks[i].level, tasks.Payload(i));
  });
  return tasks.Close();
}

}  // namespace

Result<Matrix> ReduceLeaves(const Reduction& reduction, int64_t begin, int64_t end,
                            const LeafFunction& leaf) {
  return ReduceTasks(reduction, begin, end, [&] { return LeafFunction(std::cref(leaf)); });
}

Result<Matrix> ReduceTasks(const Reduction& reduction, int64_t begin, int64_t end, const TaskFunction& task) {
  return ReduceNodes(reduction, begin, end, NodesOfLeaves(reduction, task));
}

Result<Matrix> ReduceRanges(const Reduction& reduction, int64_t ranges, int64_t stride, int64_t first,
                            int64_t count, const LeafFunction& leaf) {
  std::vector<TreeNode> nodes;
  for (int64_t range = 0; range < ranges; ++range)
    for (const TreeNode& node : CoveringNodes(range * stride + first, range * stride + first + count))
      nodes.push_back(node);
  const int level = LevelOfTasks(reduction, ranges * count);
  HEDDLE_ASSIGN_OR_RETURN(ReductionTasks tasks, ReductionTasks::Divide(reduction, std::move(nodes), level));
  const TaskFunction same = [&] { return LeafFunction(std::cref(leaf)); };
  return RunTasks(std::move(tasks), level, NodesOfLeaves(reduction, same));
}

int64_t TasksOfLeaves(const Reduction& reduction, int64_t leaves) {
  return CeilDivide(leaves, int64_t{1} << LevelOfTasks(reduction, leaves));
}

Result<Matrix> ReduceNodes(const Reduction& reduction, int64_t begin, int64_t end,
                           const NodeTaskFunction& task) {
  const int level = LevelOfTasks(reduction, end - begin);
  HEDDLE_ASSIGN_OR_RETURN(ReductionTasks tasks, ReductionTasks::Divide(reduction, begin, end, level));
  return RunTasks(std::move(tasks), level, task);
}

int64_t ColumnsOfTiles(int64_t width, int64_t leaves) {
  constexpr int64_t kWide = 1 << 17, kLeastWide = 1 << 11, kTile = 1 << 13, kLeastTile = 1 << 9,
                    kTasksOfThread = 4;
  if (width > kWide) return kTile;
  const int64_t tasks = kTasksOfThread * ParallelThreads();
  if (width <= kLeastWide || leaves >= tasks) return 0;
  return std::clamp(CeilDivide(CeilDivide(width, tasks), kLeastTile) * kLeastTile, kLeastTile, kTile);
}

Result<Matrix> ReduceTiles(const Reduction& reduction, int64_t begin, int64_t end, const Tiling& tiling,
                           const TileFunction& leaf) {
  HEDDLE_CHECK(reduction.join != Join::kMoments, "moments are joined as whole payloads");
  const std::vector<TreeNode> nodes = CoveringNodes(begin, end);
  HEDDLE_ASSIGN_OR_RETURN(Matrix partial, PartialMatrix(nodes, reduction.width));
  if (nodes.empty()) return partial;
  std::vector<Tile> tiles;
  for (int64_t i = 0; i < tiling.rows; i += tiling.tile_rows)
    for (int64_t j = 0; j < tiling.columns; j += tiling.tile_columns)
      tiles.push_back({i, j, std::min(tiling.tile_rows, tiling.rows - i),
                       std::min(tiling.tile_columns, tiling.columns - j)});
  int levels = 0;
  for (const TreeNode& node : nodes) levels = std::max(levels, node.level);
  ParallelFor(static_cast<int64_t>(tiles.size()), 1, [&](int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) {
      const Tile& tile = tiles[static_cast<size_t>(t)];
      Reduction part = reduction;
      part.width = tile.Cells();
      PayloadStack stack(reduction.join, part.width, levels);
      AlignedArray payload(part.width);
      const LeafFunction tile_leaf = [&](int64_t i, double* out) { return leaf(tile, i, out); };
      for (size_t i = 0; i < nodes.size(); ++i) {
        ReduceNode(part, nodes[i].FirstLeaf(), (nodes[i].index + 1) << nodes[i].level, tile_leaf, stack,
                   payload.data());
        double* row = partial.mutable_data() + static_cast<int64_t>(i) * (2 + reduction.width) + 2;
        for (int64_t r = 0; r < tile.rows; ++r)
          std::memcpy(row + (tile.row + r) * tiling.columns + tile.column, payload.data() + r * tile.columns,
                      static_cast<size_t>(tile.columns) * sizeof(double));
      }
    }
  });
  if (IsCancelled(reduction.cancelled)) return Cancelled("cancelled");
  return partial;
}

void SeparateCells(Matrix* nodes, int64_t offset, int64_t places, int64_t count) {
  if (count == 1) return;
  AlignedArray together(places * count);
  for (int64_t i = 0; i < nodes->rows(); ++i) {
    double* cells = nodes->mutable_data() + i * nodes->columns() + 2 + offset;
    std::copy_n(cells, places * count, together.data());
    for (int64_t c = 0; c < count; ++c)
      for (int64_t j = 0; j < places; ++j) cells[c * places + j] = together[j * count + c];
  }
}

Result<RootPayload> JoinNodes(const Reduction& reduction, const Matrix& nodes) {
  const int64_t width = reduction.width;
  HEDDLE_CHECK(nodes.rows() == 0 || nodes.columns() == 2 + width,
               "a partial value has the payload of its operator");
  if (nodes.rows() == 1) return RootPayload(nodes);
  std::vector<std::pair<int64_t, int64_t>> order;  // first leaf, row
  for (int64_t i = 0; i < nodes.rows(); ++i) {
    const double* row = nodes.data() + i * nodes.columns();
    if (static_cast<int>(row[1]) >= kWideLevel) continue;
    order.emplace_back(TreeNode{static_cast<int64_t>(row[0]), static_cast<int>(row[1])}.FirstLeaf(), i);
  }
  if (order.empty()) {
    AlignedArray root(width);
    FillIdentity(reduction, root.data());
    return RootPayload(std::move(root));
  }
  std::sort(order.begin(), order.end());

  // As PayloadStack, but payloads may be large and few: join in place of copies, wide joins in parallel.
  std::vector<std::pair<int64_t, AlignedArray>> stack;
  const auto join_top = [&] {
    JoinWide(reduction.join, stack[stack.size() - 2].second.data(), stack.back().second.data(), width);
    stack.pop_back();
  };
  for (const auto& [leaf, row] : order) {
    if (IsCancelled(reduction.cancelled)) return Cancelled("cancelled");
    while (stack.size() >= 2 && CommonLevel(stack[stack.size() - 2].first, stack.back().first) <
                                    CommonLevel(stack.back().first, leaf))
      join_top();
    stack.emplace_back(leaf, AlignedArray(width));
    CopyWide(nodes.data() + row * nodes.columns() + 2, width, stack.back().second.data());
  }
  while (stack.size() > 1) join_top();
  return RootPayload(std::move(stack.front().second));
}

}  // namespace heddle::ops
