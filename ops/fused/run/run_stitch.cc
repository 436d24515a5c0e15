// SPDX-License-Identifier: Apache-2.0
// One pass over the rows that leaves several results of several kinds. The leaves of its reductions have
// different heights, all of them powers of two, so smaller ones lie within larger ones. A task is a run of
// rows that is a node of every tree: each of them is joined there as if it were alone.
#include "ops/fused/run/run_stitch.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "core/values/panels.h"
#include "ops/base/parallel.h"
#include "ops/cells/storage.h"
#include "ops/fused/rows/pattern_result.h"
#include "ops/fused/run/body_rows.h"
#include "ops/fused/run/run_tiles.h"
#include "ops/fused/run/tile_steps.h"
#include "ops/reduction/reduction_tasks.h"
#include "ops/simd/cellwise/elementwise.h"

namespace heddle::ops {
namespace {

Reduction ReductionOf(const TileRoot& root, const KernelCall& call) {
  return {.join = root.join, .width = root.width, .cancelled = call.context.cancelled};
}

// The rows of this rank, as rows of all, and how they are cut into tasks.
struct Span {
  int64_t begin = 0, end = 0;
  int64_t task_rows = 0;  // A power of two; a task ends at its multiples, or at the end.
};

Span SpanOf(const TileProgram& program, const KernelCall& call, const TileSteps& steps) {
  Span span;
  if (call.phase == Phase::kPartial) span.begin = call.row_begin;
  span.end = span.begin + steps.driver().rows();
  int64_t width = 1;
  span.task_rows = FloorPowerOfTwo(steps.sizes().rows);
  for (const TileRoot& root : program.roots) {
    span.task_rows = std::max(span.task_rows, root.height);
    width += root.width;
  }
  while (span.task_rows < span.end - span.begin &&
         (span.task_rows * steps.sizes().row_work < std::max(kCellsOfTask, width) ||
          CeilDivide(span.end - span.begin, span.task_rows) > MostTasks(width)))
    span.task_rows *= 2;
  return span;
}

// The tree of one reduction: its nodes in the order of rows, and what one task has of it so far.
class RootTree {
 public:
  static Result<RootTree> Make(const TileRoot& root, const KernelCall& call, const Span& span) {
    int level = 0;
    while ((root.height << level) < span.task_rows) ++level;
    HEDDLE_ASSIGN_OR_RETURN(
        ReductionTasks nodes,
        ReductionTasks::Divide(
            ReductionOf(root, call), CeilDivide(span.begin, root.height),
            span.begin == span.end ? CeilDivide(span.begin, root.height) : CeilDivide(span.end, root.height),
            level));
    return RootTree(root, std::move(nodes), level);
  }

  const TileRoot& root() const { return *root_; }
  ReductionTasks& nodes() { return nodes_; }
  int level() const { return level_; }
  /// The first node whose leaves begin at `row` or behind it.
  int64_t NodeAt(int64_t row) const {
    int64_t low = 0, high = nodes_.size();
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (nodes_[middle].FirstLeaf() * root_->height < row)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

 private:
  RootTree(const TileRoot& root, ReductionTasks nodes, int level)
      : root_(&root), nodes_(std::move(nodes)), level_(level) {}
  const TileRoot* root_;
  ReductionTasks nodes_;
  int level_;
};

// What a task adds to the nodes of one tree.
class NodeWriter {
 public:
  NodeWriter(RootTree& tree, int64_t first_row)
      : tree_(tree),
        node_(tree.NodeAt(first_row)),
        stack_(tree.root().join, tree.root().width, tree.level()) {}

  /// A leaf is complete: `payload` is its. The last one of a node completes the node.
  void AddLeaf(int64_t leaf, const double* payload, bool last) {
    const auto bytes = static_cast<size_t>(tree_.root().width) * sizeof(double);
    std::memcpy(stack_.Next(leaf), payload, bytes);
    stack_.Push();
    const TreeNode& node = tree_.nodes()[node_];
    if (!last && leaf + 1 < (node.index + 1) << node.level) return;
    std::memcpy(tree_.nodes().Payload(node_++), stack_.Finish(), bytes);
  }

 private:
  RootTree& tree_;
  int64_t node_;
  PayloadStack stack_;
};

class Stitch {
 public:
  Stitch(const TileProgram& program, const KernelCall& call, TileSteps& steps)
      : program_(program), call_(call), steps_(steps), span_(SpanOf(program, call, steps)) {}

  Status Run(std::span<Value> results) {
    HEDDLE_RETURN_IF_ERROR(MakeRows());
    for (const TileRoot& root : program_.roots) {
      HEDDLE_ASSIGN_OR_RETURN(RootTree tree, RootTree::Make(root, call_, span_));
      trees_.push_back(std::move(tree));
    }
    const int64_t first = span_.begin / span_.task_rows, last = CeilDivide(span_.end, span_.task_rows);
    ParallelFor(last - first, 1, [&](int64_t begin, int64_t end) {
      std::unique_ptr<TileScratch> scratch = steps_.Take();
      AlignedArray payload(PayloadWidth());
      for (int64_t task = begin; task < end && !IsCancelled(call_.context.cancelled); ++task)
        RunTask(*scratch, std::max(span_.begin, (first + task) * span_.task_rows),
                std::min(span_.end, (first + task + 1) * span_.task_rows), payload.data());
      steps_.GiveBack(std::move(scratch));
    });
    if (IsCancelled(call_.context.cancelled)) return Cancelled("cancelled");
    return Close(results);
  }

 private:
  const ValueInfo& InfoOf(size_t result) const {
    return program_.fused.body[program_.fused.roots[result]].info;
  }
  bool IsRows(size_t result) const {
    return program_.roles.nodes[static_cast<size_t>(program_.fused.roots[result])] == BodyRole::kRows;
  }
  int64_t PayloadWidth() const {
    return program_.roots.empty() ? 0 : program_.roots.back().offset + program_.roots.back().width;
  }

  Status MakeRows() {
    rows_.resize(program_.fused.roots.size());
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (!IsRows(i)) continue;
      if (program_.IsPatterned(static_cast<int>(i))) {
        HEDDLE_ASSIGN_OR_RETURN(PatternResult result, PatternResult::Make(steps_.driver()));
        steps_.WriteTo(i, result.values(), result.background());
        patterned_.emplace(i, std::move(result));
        continue;
      }
      HEDDLE_ASSIGN_OR_RETURN(
          rows_[i], Matrix::Dense(steps_.driver().rows(), InfoOf(i).shape.columns, InfoOf(i).element_type));
      steps_.WriteTo(i, rows_[i].mutable_data());
    }
    return OkStatus();
  }

  // Rows [begin, end) of all.
  void RunTask(TileScratch& scratch, int64_t begin, int64_t end, double* payload) {
    std::vector<NodeWriter> writers;
    writers.reserve(trees_.size());
    for (RootTree& tree : trees_) {
      writers.emplace_back(tree, begin);
      FillIdentity(ReductionOf(tree.root(), call_), payload + tree.root().offset);
    }
    for (int64_t row = begin, next; row < end && !IsCancelled(call_.context.cancelled); row = next) {
      const int64_t leaf_end =
          program_.panel_rows == 0 ? end : (row / program_.panel_rows + 1) * program_.panel_rows;
      next = span_.begin + steps_.TileEnd(row - span_.begin, std::min(end, leaf_end) - span_.begin);
      steps_.RunTile(scratch, row - span_.begin, next - span_.begin, row, payload);
      for (size_t r = 0; r < trees_.size(); ++r) {
        const TileRoot& root = trees_[r].root();
        if (next % root.height != 0 && next != span_.end) continue;
        steps_.EndLeaf(scratch, static_cast<int>(r), payload);
        if (root.kind == TileRoot::Kind::kMoments) SetMoments(scratch, root, next, payload + root.offset);
        writers[r].AddLeaf((next - 1) / root.height, payload + root.offset, next == end);
        FillIdentity(ReductionOf(root, call_), payload + root.offset);
      }
    }
  }

  // Of the leaf that ends at `row_end`: its rows are in the caches, where the tiles have left them.
  void SetMoments(TileScratch& scratch, const TileRoot& root, int64_t row_end, double* payload) const {
    const int64_t begin = std::max(span_.begin, (row_end - 1) / root.height * root.height);
    const int64_t first = (begin - span_.begin) * root.n, cells = (row_end - begin) * root.n;
    const auto input = static_cast<size_t>(root.input);
    const double* values = scratch.spread.data();
    if (!program_.single) {
      values = steps_.inputs()[input].data() + first;
    } else {
      scratch.spread.resize(static_cast<size_t>(cells));
      SelectedElementwiseKernels().widen(steps_.singles()[input].data<float>() + first,
                                         scratch.spread.data(), cells);
      values = scratch.spread.data();
    }
    if (root.of_cells) return CellMoments(values, cells, {}, payload);
    ColumnMoments(values, row_end - begin, root.n, {}, payload);
  }

  Status Close(std::span<Value> results) {
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (!IsRows(i)) continue;
      if (const auto found = patterned_.find(i); found != patterned_.end()) {
        HEDDLE_ASSIGN_OR_RETURN(rows_[i], found->second.Close(InfoOf(i).element_type));
      } else if (InfoOf(i).format == Format::kSparse) {
        HEDDLE_ASSIGN_OR_RETURN(rows_[i], AsSparse(rows_[i]));
      }
      results[i] = std::move(rows_[i]);
    }
    for (size_t r = 0; r < trees_.size(); ++r) {
      const TileRoot& root = trees_[r].root();
      HEDDLE_ASSIGN_OR_RETURN(Matrix nodes, trees_[r].nodes().Close());
      steps_.SeparateRoot(static_cast<int>(r), 0, &nodes);
      HEDDLE_RETURN_IF_ERROR(
          CloseRoot(program_, root, std::move(nodes), call_, &results[static_cast<size_t>(root.result)]));
    }
    return OkStatus();
  }

  const TileProgram& program_;
  const KernelCall& call_;
  TileSteps& steps_;
  const Span span_;
  std::vector<Matrix> rows_;                   // By result.
  std::map<size_t, PatternResult> patterned_;  // Likewise, until all rows are there.
  std::vector<RootTree> trees_;
};

}  // namespace

Status RunStitch(const TileProgram& program, const KernelCall& call, TileSteps& steps,
                 std::span<Value> results) {
  return Stitch(program, call, steps).Run(results);
}

Status FinishStitch(const TileProgram& program, const KernelCall& call, std::span<Value> results) {
  size_t next = 0;
  for (size_t r = 0; r < program.roots.size() && !program.roots[r].of_rows; ++r)
    if (call.inputs[r] != nullptr)
      HEDDLE_RETURN_IF_ERROR(
          FinishRoot(program, program.roots[r], call.inputs[r]->matrix(), call, &results[next++]));
  return OkStatus();
}

}  // namespace heddle::ops
