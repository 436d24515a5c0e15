// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/values/value.h"
#include "ops/fused/fused.h"
#include "ops/recursion/body/item_region.h"
#include "ops/recursion/body/recursive_body.h"
#include "ops/reduction/reduction_tree.h"

namespace heddle::ops {

/// Where the rows of an item's value are while nodes are computed: one a node, of cells side by side.
struct ItemPlace {
  enum class Kind : uint8_t {
    kNone,    ///< Nowhere: the same for all nodes, not needed, inside a fused operator, or a view.
    kRoom,    ///< In the workspace, behind `offset` bytes a row.
    kInside,  ///< From cell `column` on in the rows of item `of`, which has its operands side by side.
    kResult,  ///< In the function's result `of`.
    kKept,    ///< Of what is ahead: for all nodes of the class.
  } kind = Kind::kNone;
  int32_t of = -1;
  int64_t column = 0;
  int64_t offset = 0;
};

/// One step over the rows of some nodes.
struct BodyStep {
  enum class Kind : uint8_t {
    kNumbers,      ///< Numbers of the nodes.
    kLookup,       ///< Rows of a matrix.
    kChildren,     ///< Rows of the children, or of their products (Item::pushed).
    kView,         ///< Cells of `from`, from `column` on: no copy.
    kCopy,         ///< The cells of `from` to those of the item from `column` on.
    kPick,         ///< The cell of inputs[0], a row, in the column that the number `from` says.
    kPut,          ///< The cell inputs[1] to that column of the item.
    kConvert,      ///< Cells of another element type.
    kMultiply,     ///< Rows times a matrix that all share; several items: one product, rows below each other.
    kRegion,       ///< A fused operator: `item` is its number.
    kTranspose,    ///< Each node's matrix.
    kNodeProduct,  ///< A matrix times each node's matrix.
    kKernel,       ///< The operator's own kernel.
  } kind = Kind::kKernel;
  int32_t item = -1, from = -1;
  int64_t column = 0;
  std::vector<int32_t> joined = {};  ///< kMultiply: the items, the first of which is `item`.
  /// kMultiply of several: their left rows stand below each other, so many bytes a row into the workspace;
  /// -1: they are there already.
  int64_t stack = -1;
};

/// Where an item's rows are now.
struct ItemRows {
  char* cells = nullptr;
  int64_t stride = 0;  ///< Cells between rows; 0: the same for all.
};

/// What one thread needs to compute rows of any body.
struct BodyWorkspace {
  AlignedArray memory;
  int64_t bytes = 0;
  std::vector<ItemRows> at;           ///< By item.
  std::vector<Value> values;          ///< By item: of kernels.
  std::vector<const double*> inputs;  ///< Of the call of a region.
  std::vector<double*> outputs;
  std::vector<int64_t> input_strides, output_strides;
};

/// How the items of a body are computed: its steps, and where each value is. Found once for a body.
/// Thread-safe.
class BodyProgram {
 public:
  explicit BodyProgram(std::shared_ptr<const RecursiveBody> body);

  const RecursiveBody& body() const { return *body_; }
  const std::vector<BodyStep>& ahead() const { return ahead_; }
  const std::vector<BodyStep>& level() const { return level_; }
  const ItemPlace& PlaceOf(int32_t id) const { return places_[static_cast<size_t>(id)]; }
  /// What is to be there of an item that is the same for all nodes, or is pushed: false for those that only
  /// what is computed elsewhere reads.
  bool IsNeeded(int32_t id) const { return needed_[static_cast<size_t>(id)]; }
  const std::vector<int32_t>& kept() const { return kept_; }  ///< Items of kKept.
  /// Of those: whether steps of levels read it. Else it is only a result, or a result looks at it.
  bool IsReadByLevels(int32_t id) const { return read_by_levels_[static_cast<size_t>(id)]; }
  /// The item that has a result's cells, from `column` on: itself, or the one that it is a view of.
  struct ResultBase {
    int32_t item = -1;
    int64_t column = 0;
  };
  const ResultBase& BaseOfResult(size_t result) const { return result_bases_[result]; }
  const std::vector<int32_t>& pushed() const { return pushed_; }  ///< Those of Item::pushed that are needed.
  /// Bytes that the rooms of one node take.
  int64_t row_bytes() const { return row_bytes_; }

  const ItemRegion& region(int32_t group) const { return regions_[static_cast<size_t>(group)]; }
  /// Parameters that operators of stage kOnce depend on, and those operators: their values are kept for the
  /// next evaluations with the same parameters.
  const std::vector<int32_t>& once_reads() const { return once_reads_; }
  const std::vector<int32_t>& once_makes() const { return once_makes_; }
  struct OnceValues {
    std::vector<Value> read, made;  ///< By the lists above.
  };
  std::shared_ptr<const OnceValues> LastOnce() const {
    const std::lock_guard lock(once_mutex_);
    return once_;
  }
  void KeepOnce(OnceValues values) const {
    const std::lock_guard lock(once_mutex_);
    once_ = std::make_shared<const OnceValues>(std::move(values));
  }
  /// "ahead: 1 rows looked up, 1 products (...); a level: 2 results of children, ..." for people.
  std::string ToText() const;
  bool has_kernels() const { return has_kernels_; }  ///< Of rows of nodes: steps of kKernel.
  /// Its code for so many rows; compiled when that has come to be worth it.
  Result<const RegionCode*> CodeOf(int32_t group, int64_t rows, FusedRuntime& runtime) const;

 private:
  struct Code {
    std::shared_ptr<const RegionCode> interpreted;
    std::atomic<const RegionCode*> ready = nullptr;  // `made`.
    std::mutex mutex;                                // Of all below.
    std::shared_ptr<const RegionCode> made;
    double work = 0, least = 0;  // Interpreted since the runtime was asked; it is asked from so much on.
  };
  friend class ProgramBuilder;

  const std::shared_ptr<const RecursiveBody> body_;
  std::vector<BodyStep> ahead_, level_;
  std::vector<ItemPlace> places_;
  std::vector<bool> needed_, read_by_levels_;
  std::vector<ResultBase> result_bases_;
  std::vector<int32_t> kept_, pushed_;
  std::vector<ItemRegion> regions_;
  mutable std::vector<std::unique_ptr<Code>> codes_;
  int64_t row_bytes_ = 0;
  bool has_kernels_ = false;
  std::vector<int32_t> once_reads_, once_makes_;
  mutable std::mutex once_mutex_;
  mutable std::shared_ptr<const OnceValues> once_;
};

}  // namespace heddle::ops
