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
#include "ops/recursion/body/body_region.h"
#include "ops/recursion/body/recursive_body.h"
#include "ops/reduction/reduction_tree.h"

namespace heddle::ops {

/// Where the rows of a value are written, one row a node, its cells side by side.
struct ValuePlace {
  enum class Kind : uint8_t {
    kNone,       ///< No step writes them: shared, a view of another value, or only inside a fused operator.
    kWorkspace,  ///< In the workspace, from `offset` bytes times the number of rows on.
    kPartOf,     ///< In the rows of value `of`, from cell `column` on: `of` puts its operands side by side.
    kResult,     ///< In the rows of the function's result `of`.
    kClassRows,  ///< In a matrix with a row for each node of the class, made before the first batch.
  } kind = Kind::kNone;
  int32_t of = -1;
  int64_t column = 0;
  int64_t offset = 0;
};

/// One step over the rows of some nodes. `value` is what it computes, a number of RecursiveBody::values.
struct BodyStep {
  enum class Kind : uint8_t {
    kNumbers,      ///< Numbers that the structure program gives.
    kLookup,       ///< Rows of a matrix.
    kChildren,     ///< Rows of the children's results, or of products with them (BodyValue::with_child).
    kView,         ///< The cells of `from`, from `column` on: no copy.
    kCopy,         ///< The cells of `from` to those of the value from `column` on.
    kPick,         ///< The cell of inputs[0], a row, in the column that number `from` says.
    kPut,          ///< The cell inputs[1] to that column of the value.
    kConvert,      ///< Cells of another element type.
    kMultiply,     ///< Rows times a shared matrix; of several values, their rows below each other.
    kRegion,       ///< A fused operator: `value` is its number.
    kTranspose,    ///< Each node's matrix.
    kNodeProduct,  ///< A matrix times each node's matrix.
    kKernel,       ///< The operator's own kernel.
  } kind = Kind::kKernel;
  int32_t value = -1, from = -1;
  int64_t column = 0;
  std::vector<int32_t> stacked = {};  ///< Of kMultiply: its values, the first of which is `value`.
  /// Of kMultiply of several values: where their left rows are copied below each other, as an offset of
  /// ValuePlace; -1: they are written so in the first place.
  int64_t stack_offset = -1;
};

/// Where the rows of a value are while some nodes are computed.
struct ValueRows {
  char* cells = nullptr;
  int64_t stride = 0;  ///< Cells between rows; 0: one row for all nodes.
};

/// The memory in which one thread computes rows of any body.
struct BodyWorkspace {
  AlignedArray memory;
  int64_t bytes = 0;
  std::vector<ValueRows> at;          ///< By value.
  std::vector<Value> kernel_results;  ///< By value: what the steps of kKernel have made.
  // Arguments of the call of a fused operator.
  std::vector<const double*> inputs;
  std::vector<double*> outputs;
  std::vector<int64_t> input_strides, output_strides;
};

/// How the values of a body are computed: the steps, and where each value is written. Made once for a body.
/// Thread-safe.
class BodyProgram {
 public:
  explicit BodyProgram(std::shared_ptr<const RecursiveBody> body);

  const RecursiveBody& body() const { return *body_; }
  /// Steps before the first batch, over the nodes of the class,
  const std::vector<BodyStep>& class_steps() const { return class_steps_; }
  /// and those of each batch.
  const std::vector<BodyStep>& batch_steps() const { return batch_steps_; }
  const ValuePlace& PlaceOf(int32_t id) const { return places_[static_cast<size_t>(id)]; }
  /// Whether a value that is shared, or computed with the child, must be stored. False where only operators
  /// that run elsewhere read it.
  bool IsNeeded(int32_t id) const { return needed_[static_cast<size_t>(id)]; }
  /// Values of ValuePlace::Kind::kClassRows,
  const std::vector<int32_t>& class_values() const { return class_values_; }
  /// and whether steps of batches read one of them. Others are results, or results are views of them.
  bool IsReadByBatches(int32_t id) const { return read_by_batches_[static_cast<size_t>(id)]; }
  /// The value whose cells are those of a result, from `column` on: the result itself, or what it is a view
  /// of.
  struct ResultBase {
    int32_t value = -1;
    int64_t column = 0;
  };
  const ResultBase& BaseOfResult(size_t result) const { return result_bases_[result]; }
  /// Values of BodyValue::with_child that are needed.
  const std::vector<int32_t>& with_child() const { return with_child_; }
  /// Bytes of the workspace for one node.
  int64_t row_bytes() const { return row_bytes_; }

  const BodyRegion& region(int32_t fused_operator) const {
    return regions_[static_cast<size_t>(fused_operator)];
  }
  /// The parameters that operators of Stage::kPerEvaluation read, and these operators: evaluations with the
  /// same parameters share what the operators make.
  const std::vector<int32_t>& shared_operands() const { return shared_operands_; }
  const std::vector<int32_t>& shared_operators() const { return shared_operators_; }
  struct SharedValues {
    std::vector<Value> operands, results;  ///< By the lists above.
  };
  std::shared_ptr<const SharedValues> LastShared() const {
    const std::lock_guard lock(shared_mutex_);
    return shared_;
  }
  void SaveShared(SharedValues values) const {
    const std::lock_guard lock(shared_mutex_);
    shared_ = std::make_shared<const SharedValues>(std::move(values));
  }
  /// For -stats: "ahead: 1 rows looked up, 1 products (...); a level: 2 results of children, ...".
  std::string ToText() const;
  bool has_kernels() const { return has_kernels_; }  ///< Whether there are steps of kKernel.
  /// The code of a fused operator for so many rows; compiled when enough rows have been interpreted.
  Result<const RegionCode*> CodeOf(int32_t fused_operator, int64_t rows, FusedRuntime& runtime) const;

 private:
  struct Code {
    std::shared_ptr<const RegionCode> interpreted;
    std::atomic<const RegionCode*> ready = nullptr;  // `compiled`.
    std::mutex mutex;                                // Of all below.
    std::shared_ptr<const RegionCode> compiled;
    double work = 0;   // Interpreted since the runtime was asked for code.
    double least = 0;  // It is asked again after so much.
  };
  friend class ProgramBuilder;

  const std::shared_ptr<const RecursiveBody> body_;
  std::vector<BodyStep> class_steps_, batch_steps_;
  std::vector<ValuePlace> places_;
  std::vector<bool> needed_, read_by_batches_;
  std::vector<ResultBase> result_bases_;
  std::vector<int32_t> class_values_, with_child_;
  std::vector<BodyRegion> regions_;
  mutable std::vector<std::unique_ptr<Code>> codes_;
  int64_t row_bytes_ = 0;
  bool has_kernels_ = false;
  std::vector<int32_t> shared_operands_, shared_operators_;
  mutable std::mutex shared_mutex_;
  mutable std::shared_ptr<const SharedValues> shared_;
};

}  // namespace heddle::ops
