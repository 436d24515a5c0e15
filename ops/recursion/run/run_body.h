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

/// Places whose results there are and whose products (NodeResults::Product) nobody has needed so far: ranges,
/// by product.
using PendingProducts = std::vector<std::vector<std::pair<int64_t, int64_t>>>;

/// One body in an evaluation: what is the same for all nodes, and what was computed ahead for those of its
/// class.
///
/// A batch is computed some rows at a time, whose values stay in the caches: all steps of the body
/// (body_program.h) for these rows, then the next ones; where there are threads, side by side.
class BodyRun {
 public:
  /// All outlive it.
  BodyRun(std::shared_ptr<const RecursiveBody> body, const Linearized::Class& node_class,
          std::span<const int64_t> nodes, const KernelSource& kernels, KernelContext& context,
          RecursionCache& cache);

  /// Before all batches: stages kOnce and kAhead, and room in `results` for products with them.
  Status Begin(const std::map<std::string, Value>& parameters, NodeResults* results);
  /// Computes the nodes at these places and stores their results in `results`, which has those of all their
  /// children; `pending` has those that the caller has computed and not multiplied yet. Several threads may
  /// do so for different nodes, each with a `pending` of its own.
  Status RunBatch(int64_t begin, int64_t end, NodeResults* results, PendingProducts* pending) const;
  /// How long a batch of the class takes, about.
  BodyTime time() const { return BodyTime(*program_); }
  /// Whether an integer has come up that doubles do not tell from its neighbours: then its results are none.
  bool met_large_integer() const { return met_large_integer_.load(std::memory_order_relaxed); }

 private:
  using Item = RecursiveBody::Item;
  using Form = RecursiveBody::Form;
  using Source = RecursiveBody::Source;
  using Stage = RecursiveBody::Stage;

  // Rows that are computed together: of what is ahead from 0 on, of a level by the places of the nodes.
  struct Chunk {
    BodyWorkspace& workspace;
    int64_t begin, end;
    NodeResults* results;  // nullptr: ahead.
    int64_t rows() const { return end - begin; }
  };

  Status ReadParameters(const std::map<std::string, Value>& parameters);
  Status RunOnce();
  Status KeepDense(int32_t id);
  Status RunOperatorOnce(int32_t id);
  Status RunAhead();
  bool PaysToShare() const;
  Status ExpandShared(int32_t id);
  Status MakeRoomForProducts(NodeResults* results);
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
  Status CallRegion(int32_t group, const Chunk& chunk) const;
  void Transpose(int32_t id, const Chunk& chunk) const;
  void MultiplyNodes(int32_t id, const Chunk& chunk) const;
  Status MoveNumbered(const BodyStep& step, const Chunk& chunk) const;
  void Store(size_t result, const Chunk& chunk) const;
  int64_t NodeAt(const Chunk& chunk, int64_t row) const;
  double NumberAt(int32_t index, int64_t node) const;
  bool IsGathered(int32_t id) const;

  // run_kernels.cc: operators by their own kernels, on matrices.
  Status RunKernel(int32_t id, const Chunk& chunk) const;
  Status RunRowsByKernel(int32_t id, const Chunk& chunk, Value* result) const;
  Status RunNodeByNode(int32_t id, const Chunk& chunk, Value* result) const;
  Result<Value> Call(int32_t id, const Node& node, std::span<const Value* const> inputs,
                     std::span<const ValueInfo> infos, int64_t rows) const;
  Result<Value> ValueOf(int32_t id, const Chunk& chunk) const;

  const Item& ItemOf(int32_t id) const { return body_->items[static_cast<size_t>(id)]; }
  const ItemRows& RowsOf(int32_t id, const Chunk& chunk) const {
    return chunk.workspace.at[static_cast<size_t>(id)];
  }

  const std::shared_ptr<const RecursiveBody> body_;
  const std::shared_ptr<const BodyProgram> program_;
  const Linearized::Class& class_;
  const std::span<const int64_t> nodes_;  // By place.
  const KernelSource& kernels_;
  KernelContext& context_;
  RecursionCache& cache_;
  std::vector<Value> once_;      // By item: of kOnce; of kKept all rows.
  std::vector<double> numbers_;  // By item: of one cell that is the same for all.
  std::vector<ItemRows> same_;   // By item: of what is the same for all; else empty.
  std::vector<std::shared_ptr<const PackedWeights>> packed_;  // By item: on the right of products.
  std::vector<size_t> products_;                              // By the program's pushed(): of the results.
  DistinctRows shared_;  // Nodes with the same numbers are computed once ahead; empty where all are.
  mutable std::atomic<bool> met_large_integer_ = false;
};

}  // namespace heddle::ops
