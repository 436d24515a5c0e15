// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ops/recursion/distinct_rows.h"
#include "ops/recursion/packed_weights.h"
#include "ops/recursion/recursive_body.h"

namespace heddle::ops {

/// One body in an evaluation: what is the same for all nodes, and what was computed ahead for those of its
/// class. One thread at a time.
class BodyRun {
 public:
  /// All outlive it.
  BodyRun(std::shared_ptr<const RecursiveBody> body, const Linearized::Class& node_class,
          std::span<const int64_t> nodes, const KernelSource& kernels, KernelContext& context,
          WeightCache& weights);

  /// Before all batches: stages kOnce and kAhead.
  Status Begin(const std::map<std::string, Value>& parameters);
  /// Computes the nodes at these places and stores their results in `results`, which has those of all their
  /// children.
  Status RunBatch(int64_t begin, int64_t end, NodeResults* results);
  /// Whether an integer has come up that doubles do not tell from its neighbours: then its results are none.
  bool met_large_integer() const { return met_large_integer_.load(std::memory_order_relaxed); }

 private:
  using Item = RecursiveBody::Item;
  using Form = RecursiveBody::Form;
  using Source = RecursiveBody::Source;
  using Stage = RecursiveBody::Stage;

  // What is kept of an item from batch to batch.
  struct Slot {
    const Operator* op = nullptr;
    Node node;  // Its info has the rows of the batch.
    std::vector<ValueInfo> input_infos;
    Value value;  // kOnce; kAhead: of all nodes; kLevel: of the batch.
    int32_t last_reader = RecursiveBody::kNone;
    std::shared_ptr<const PackedWeights> weights;  // Of a product: what is on the right.
  };
  void PackWeights(size_t id);
  Status RunAhead();
  bool PaysToShare() const;
  bool IsReadInLevels(int32_t id) const;
  Status ExpandShared(size_t id);
  Status RunItem(size_t id, int64_t begin, int64_t end, const NodeResults* results);
  Status RunOnce(size_t id, const std::map<std::string, Value>& parameters);
  Status RunRows(size_t id, int64_t begin, int64_t end);
  // To the slot's value, inputs as its infos tell.
  Status RunKernel(const Node& node, std::span<const Value* const> inputs, int64_t rows, Slot* slot);
  Status RunJoined(size_t first, int64_t begin, int64_t end);
  Status RunNodeByNode(size_t id, int64_t begin, int64_t end);
  Result<Matrix> Lookup(const Item& item, int64_t rows) const;
  Result<Matrix> Numbers(const Item& item, int64_t rows) const;
  Result<Matrix> Convert(const Item& item, int64_t begin, int64_t end) const;
  double NumberAt(int32_t index, int64_t row) const;
  Result<Matrix> Children(const Item& item, int64_t begin, int64_t end, const NodeResults& results) const;
  // The item's value for the nodes [begin, end).
  Value ValueFor(int32_t id, int64_t begin, int64_t end) const;
  Result<Value> Spread(const Value& value, Shape shape) const;
  Status Store(size_t result, int64_t begin, int64_t end, NodeResults* results) const;
  const Item& ItemOf(int32_t id) const { return body_->items[static_cast<size_t>(id)]; }
  const Slot& SlotOf(int32_t id) const { return slots_[static_cast<size_t>(id)]; }

  const std::shared_ptr<const RecursiveBody> body_;
  const Linearized::Class& class_;
  const std::span<const int64_t> nodes_;  // By place.
  const KernelSource& kernels_;
  KernelContext& context_;
  WeightCache& weights_;
  std::vector<Slot> slots_;
  int64_t batch_begin_ = 0;
  int64_t ahead_begin_ = 0;  // Of what is computed ahead: where its rows begin.
  DistinctRows shared_;      // Nodes with the same numbers are computed once ahead; empty where all are.
  std::atomic<bool> met_large_integer_ = false;
};

}  // namespace heddle::ops
