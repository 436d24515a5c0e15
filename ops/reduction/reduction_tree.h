// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/values/matrix.h"
#include "ops/base/kernel.h"

// The tree of docs/numerics.md, section 2: T(a, b) = T(a, a + s) + T(a + s, b) over leaves, s the largest
// power of two < b - a. It is the perfect binary tree over leaves 0, 1, 2, ... with the missing ones left
// out, so every part of it is a function of leaf numbers alone, whoever computes it. A leaf yields a
// *payload*: a run of doubles joined element by element.
namespace heddle::ops {

/// Node (index, level) covers leaves [index * 2^level, (index + 1) * 2^level).
struct TreeNode {
  int64_t index = 0;
  int level = 0;
  int64_t FirstLeaf() const { return index << level; }
  bool operator==(const TreeNode&) const = default;
};

/// The fewest nodes that cover leaves [begin, end), ascending; at most two of a level.
std::vector<TreeNode> CoveringNodes(int64_t begin, int64_t end);

/// How two payloads become one. kMoments: payload is (count, w means, w sums of squared deviations), joined
/// by Chan's formula: share = nb/n, mean = ma + d*share, squares = (sa + sb) + (d*d) * (na*share), d = mb -
/// ma.
enum class Join : uint8_t { kSum, kProduct, kMinimum, kMaximum, kMoments };

/// The join of a payload: one for all of it, or one for each of its eights of doubles, which are results of
/// their own.
struct Joins {
  static constexpr int kMost = 3;
  Joins(Join join) : of_eights{join} {}  // NOLINT(google-explicit-constructor): most payloads have one.
  void Add(Join join) { of_eights[static_cast<size_t>(count++)] = join; }
  bool operator==(Join join) const { return count == 1 && of_eights[0] == join; }

  std::array<Join, kMost> of_eights{};
  int count = 1;
};

/// left = left joined with right. `left` is 64-byte aligned and padded to whole cache lines; its padding ends
/// up arbitrary.
void JoinPayloads(const Joins& joins, double* left, const double* right, int64_t width);
void FillPayload(double* payload, int64_t width, double value);

/// A 64-byte aligned run of doubles, its size rounded up to whole cache lines; uninitialised. std::bad_alloc,
/// as of `new`, where there is no memory: the kernel ends with kResourceExhausted (ops/catalog.cc).
class AlignedArray {
 public:
  AlignedArray() = default;
  explicit AlignedArray(int64_t size);
  double* data() { return data_.get(); }
  const double* data() const { return data_.get(); }
  double& operator[](int64_t i) { return data_.get()[i]; }

 private:
  struct Free {
    void operator()(double* data) const;
  };
  std::unique_ptr<double, Free> data_;
};

/// Joins payloads given in ascending leaf order, some of which may be missing (a missing payload changes
/// nothing). Memory is one array of max_level + 2 payloads, allocated once.
class PayloadStack {
 public:
  /// Leaves (or nodes) that differ in no bit above `max_level`.
  PayloadStack(const Joins& joins, int64_t width, int max_level);
  /// Where to write the payload of `leaf`, 64-byte aligned; joins what no later leaf can come between.
  double* Next(int64_t leaf);
  /// The payload at Next() is complete and counts; without this call that leaf is missing.
  void Push() { leaves_[depth_++] = next_leaf_; }
  /// The root of all that was pushed (and forgets it); nullptr when nothing was.
  const double* Finish();

 private:
  double* Row(int i) { return memory_.data() + i * stride_; }
  void JoinTop();
  Joins joins_;
  int64_t width_, stride_;
  int depth_ = 0;
  int64_t next_leaf_ = 0;
  int64_t leaves_[66];
  AlignedArray memory_;
};

/// Writes the payload of a leaf (uninitialised, 64-byte aligned memory); false if the leaf holds nothing that
/// counts.
using LeafFunction = std::function<bool(int64_t leaf, double* payload)>;

struct Reduction {
  Joins join = Join::kSum;
  int64_t width = 8;       ///< Doubles of a payload.
  int64_t leaf_cells = 1;  ///< Work of a leaf, to choose how many make a task.
  const std::atomic<bool>* cancelled = nullptr;
};
/// Makes it the payload of a node all of whose leaves are missing.
void FillIdentity(const Reduction& reduction, double* payload);

/// Leaves [begin, end) as a partial value: one row per covering node, columns (index, level, payload...).
/// Parallel over aligned runs of leaves; the same bits however the leaves are divided. kCancelled when
/// cancelled.
Result<Matrix> ReduceLeaves(const Reduction& reduction, int64_t begin, int64_t end, const LeafFunction& leaf);
/// The same; every task asks for a function of its own, which may keep what its leaves share.
using TaskFunction = std::function<LeafFunction()>;
Result<Matrix> ReduceTasks(const Reduction& reduction, int64_t begin, int64_t end, const TaskFunction& task);

/// The same; every task asks for a function of its own, which writes the payload of a whole node over leaves
/// [begin, end) of at most 2^max_level leaves.
using NodeFunction = std::function<void(int64_t begin, int64_t end, double* payload)>;
using NodeTaskFunction = std::function<NodeFunction(int max_level)>;
Result<Matrix> ReduceNodes(const Reduction& reduction, int64_t begin, int64_t end,
                           const NodeTaskFunction& task);

/// A rectangle of a payload that is itself a row-major array.
struct Tile {
  int64_t row = 0, column = 0, rows = 1, columns = 0;
  int64_t Cells() const { return rows * columns; }
};
/// Tasks that ReduceLeaves makes of so many leaves that follow each other, about.
int64_t TasksOfLeaves(const Reduction& reduction, int64_t leaves);

/// Cuts a payload of rows x columns into tiles of at most tile_rows x tile_columns, row by row.
struct Tiling {
  int64_t rows, columns, tile_rows, tile_columns;
};
/// Columns of the tiles by which a payload of so many cells in a row is divided among tasks: of a wide one,
/// and of one with fewer leaves than keep the threads busy. 0: tasks are leaves.
int64_t ColumnsOfTiles(int64_t width, int64_t leaves);
/// Writes the cells of one tile of a leaf's payload, row-major without gaps; false if they do not count.
using TileFunction = std::function<bool(const Tile& tile, int64_t leaf, double* payload)>;

/// ReduceLeaves for payloads so wide that tasks are tiles of the payload, each over all leaves. Not for
/// kMoments.
Result<Matrix> ReduceTiles(const Reduction& reduction, int64_t begin, int64_t end, const Tiling& tiling,
                           const TileFunction& leaf);

/// Payloads of a partial value in which place j has cells j * count + c become such with them at c * places +
/// j.
void SeparateCells(Matrix* nodes, int64_t offset, int64_t places, int64_t count);

/// Level of the smallest node that contains both leaves; 0 for a leaf itself.
inline int CommonLevel(int64_t a, int64_t b) { return std::bit_width(static_cast<uint64_t>(a ^ b)); }

/// A payload of its own, or that of the only node of a partial value, where it is.
class RootPayload {
 public:
  explicit RootPayload(AlignedArray own) : own_(std::move(own)), data_(own_.data()) {}
  explicit RootPayload(Matrix node) : node_(std::move(node)), data_(node_.data() + 2) {}
  const double* data() const { return data_; }
  double operator[](int64_t i) const { return data_[i]; }

 private:
  AlignedArray own_;
  Matrix node_;
  const double* data_;
};

/// What is added to the level of a node in the rows that tell numbers a payload of doubles cannot hold
/// (ops/aggregate/wide_sums.h): once for those that are doubles, twice for larger ones.
constexpr int kWideLevel = 64;

/// The root of a partial value whose rows may be in any order; as FillIdentity makes it when it has no rows.
/// Rows of kWideLevel do not count.
Result<RootPayload> JoinNodes(const Reduction& reduction, const Matrix& nodes);

}  // namespace heddle::ops
