// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ops/recursion/body/batch_time.h"
#include "ops/recursion/body/body_program.h"
#include "ops/recursion/body/recursive_body.h"
#include "ops/recursion/run/distinct_rows.h"
#include "ops/recursion/run/evaluate_recursion.h"
#include "ops/recursion/run/recursion_cache.h"

namespace heddle::ops {

/// By product (NodeResults::Product): ranges of places whose results are there and are not multiplied yet.
using PendingProducts = std::vector<std::vector<std::pair<int64_t, int64_t>>>;

/// One body in an evaluation: values that all nodes share, and values that are computed for all nodes of the
/// class before the first batch.
///
/// A batch is computed in chunks of rows, whose values stay in the caches: all steps of the body
/// (body_program.h) for the rows of one chunk, then those of the next, or those of several on several
/// threads.
class BodyRun {
 public:
  /// All outlive it.
  BodyRun(std::shared_ptr<const RecursiveBody> body, const Linearized::Class& node_class,
          std::span<const int64_t> nodes, const KernelSource& kernels, KernelContext& context,
          RecursionCache& cache);

  /// Before all batches: computes the values of kPerEvaluation and kPerClass, and allocates the products with
  /// `results`.
  Status Begin(const std::map<std::string, Value>& parameters, NodeResults* results);
  /// Computes the nodes at these places and stores their results in `results`, which must have the results of
  /// all their children; `pending`: those that the caller has computed and not multiplied yet. Several
  /// threads may run batches of different nodes, each with its own `pending`.
  Status RunBatch(int64_t begin, int64_t end, NodeResults* results, PendingProducts* pending) const;
  /// How long a batch of the class is expected to take.
  BodyTime time() const { return BodyTime(*program_); }
  /// Whether an operator has given an integer that doubles do not tell from its neighbours: then the results
  /// are not to be used.
  bool met_large_integer() const { return met_large_integer_.load(std::memory_order_relaxed); }

 private:
  using Layout = BodyValue::Layout;
  using Source = BodyValue::Source;
  using Stage = BodyValue::Stage;

  // Rows that go through all steps together.
  struct Chunk {
    BodyWorkspace& workspace;
    int64_t begin, end;    // Places of nodes in a batch; before the batches, rows counted from 0.
    NodeResults* results;  // nullptr before the batches.
    int64_t rows() const { return end - begin; }
  };

  Status ReadParameters(const std::map<std::string, Value>& parameters);
  Status ComputeShared();
  Status StoreShared(int32_t id);
  Status RunSharedOperator(int32_t id);
  Status ComputeClassRows();
  bool PaysToFindEqualNodes() const;
  Status CopyToNodes(int32_t id);
  Status AllocateProducts(NodeResults* results);
  void MultiplyChildren(NodeResults* results, PendingProducts* pending) const;
  Status RunRows(int64_t begin, int64_t end, NodeResults* results) const;
  Status RunChunk(int64_t begin, int64_t end, NodeResults* results) const;
  Status RunStep(const BodyStep& step, const Chunk& chunk) const;
  void SetPlaces(const Chunk& chunk) const;
  Status Numbers(int32_t id, const Chunk& chunk) const;
  Status Lookup(int32_t id, const Chunk& chunk) const;
  Status Children(int32_t id, const Chunk& chunk) const;
  void Copy(const BodyStep& step, const Chunk& chunk) const;
  void Convert(int32_t id, const Chunk& chunk) const;
  void Multiply(const BodyStep& step, const Chunk& chunk) const;
  Status CallRegion(int32_t fused_operator, const Chunk& chunk) const;
  void Transpose(int32_t id, const Chunk& chunk) const;
  void MultiplyNodes(int32_t id, const Chunk& chunk) const;
  Status MoveNumbered(const BodyStep& step, const Chunk& chunk) const;
  void Store(size_t result, const Chunk& chunk) const;
  int64_t NodeAt(const Chunk& chunk, int64_t row) const;
  double NumberAt(int32_t index, int64_t node) const;
  bool HasDistinctRowsAlone(int32_t id) const;

  // run_kernels.cc: operators by their own kernels, on matrices.
  Status RunKernel(int32_t id, const Chunk& chunk) const;
  Status RunRowsByKernel(int32_t id, const Chunk& chunk, Value* result) const;
  Status RunNodeByNode(int32_t id, const Chunk& chunk, Value* result) const;
  Result<Value> Call(int32_t id, const Node& node, std::span<const Value* const> inputs,
                     std::span<const ValueInfo> infos, int64_t rows) const;
  Result<Value> ValueOf(int32_t id, const Chunk& chunk) const;

  const BodyValue& ValueAt(int32_t id) const { return body_->values[static_cast<size_t>(id)]; }
  const ValueRows& RowsOf(int32_t id, const Chunk& chunk) const {
    return chunk.workspace.at[static_cast<size_t>(id)];
  }

  const std::shared_ptr<const RecursiveBody> body_;
  const std::shared_ptr<const BodyProgram> program_;
  const Linearized::Class& class_;
  const std::span<const int64_t> nodes_;  // By place.
  const KernelSource& kernels_;
  KernelContext& context_;
  RecursionCache& cache_;
  std::vector<Value> shared_;  // By value: of kPerEvaluation, and all rows of ValuePlace::kClassRows.
  std::vector<double> shared_numbers_;                        // By value: of shared values of one cell.
  std::vector<ValueRows> shared_rows_;                        // By value: of shared matrices; else empty.
  std::vector<std::shared_ptr<const PackedWeights>> packed_;  // By value: the right operand of a product.
  std::vector<size_t> products_;  // By BodyProgram::with_child(): in NodeResults::products.
  // Nodes with the same numbers have the same rows before the batches: one is computed of each. Empty where
  // all rows are computed.
  DistinctRows distinct_;
  mutable std::atomic<bool> met_large_integer_ = false;
};

}  // namespace heddle::ops
