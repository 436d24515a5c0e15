// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/run/run_tiles.h"

#include <algorithm>
#include <memory>

#include "core/values/panels.h"
#include "ops/base/operator.h"
#include "ops/base/parallel.h"
#include "ops/cells/storage.h"
#include "ops/fused/rows/pattern_result.h"
#include "ops/fused/run/body_rows.h"
#include "ops/fused/run/run_dictionaries.h"
#include "ops/fused/run/run_long_rows.h"
#include "ops/fused/run/run_stitch.h"
#include "ops/fused/run/tile_steps.h"
#include "ops/reduction/reduction_tasks.h"
#include "ops/sparse/gather_cells.h"
#include "ops/sparse/sparse_leaves.h"

namespace heddle::ops {
namespace {

// Given back when its last owner goes.
std::shared_ptr<TileScratch> TakeShared(TileSteps& steps) {
  return {steps.Take().release(),
          [&steps](TileScratch* scratch) { steps.GiveBack(std::unique_ptr<TileScratch>(scratch)); }};
}

Result<Matrix> RunRows(const TileProgram& program, const KernelCall& call, TileSteps& steps) {
  const ValueInfo& info = program.fused.body[program.fused.roots[0]].info;
  const TileSizes& sizes = steps.sizes();
  const int64_t rows = steps.driver().rows();
  const bool patterned = program.IsPatterned(0);
  Matrix result;
  PatternResult entries;
  if (patterned) {
    HEDDLE_ASSIGN_OR_RETURN(entries, PatternResult::Make(steps.driver()));
    steps.WriteTo(0, entries.values(), entries.background());
  } else {
    HEDDLE_ASSIGN_OR_RETURN(result, Matrix::Dense(rows, info.shape.columns, info.element_type));
    steps.WriteTo(0, result.mutable_data());
  }
  // Tasks are runs of whole groups of rows.
  const int64_t least = program.by_pattern ? kRowsTogether : sizes.rows;
  const int64_t grain = std::max(least, (int64_t{1} << 17) / sizes.row_work / least * least);
  ParallelFor(CeilDivide(rows, grain), 1, [&](int64_t begin, int64_t end) {
    std::unique_ptr<TileScratch> scratch = steps.Take();
    const int64_t last = std::min(rows, end * grain);
    for (int64_t row = begin * grain, next; row < last && !IsCancelled(call.context.cancelled); row = next) {
      next = steps.TileEnd(row, last);
      steps.RunTile(*scratch, row, next, 0, nullptr);
    }
    steps.GiveBack(std::move(scratch));
  });
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  if (patterned) return entries.Close(info.element_type);
  if (info.format == Format::kSparse) return AsSparse(result);
  return result;
}

// The nodes of panels [begin, end) of rows that are cut by columns: each chunk is a leaf, or adds to some
// columns of one.
Result<Matrix> ReduceChunks(const TileProgram& program, Reduction reduction, TileSteps& steps, int64_t begin,
                            int64_t end, int64_t span_begin, int64_t span_end) {
  if (program.roots[0].kind == TileRoot::Kind::kColumns)
    return ReduceTiles(reduction, begin, end, Tiling{1, reduction.width, 1, kTileColumns},
                       [&](const Tile& tile, int64_t leaf, double* payload) {
                         std::unique_ptr<TileScratch> scratch = steps.Take();
                         FillPayload(payload, tile.columns,
                                     simd::StartOf(FoldOf(program.roots[0].aggregate)));
                         const int64_t last = std::min(span_end, (leaf + 1) * program.panel_rows);
                         for (int64_t row = leaf * program.panel_rows;
                              row < last && !IsCancelled(reduction.cancelled); ++row)
                           steps.RunColumns(*scratch, row - span_begin, tile.column, kTileColumns, payload);
                         steps.GiveBack(std::move(scratch));
                         return true;
                       });
  const int64_t chunks = program.chunks;
  reduction.leaf_cells = kColumnChunk;
  return ReduceTasks(reduction, begin * chunks, end * chunks, [&]() -> LeafFunction {
    return [&, chunks, scratch = TakeShared(steps)](int64_t leaf, double* payload) {
      FillIdentity(reduction, payload);
      steps.RunColumns(*scratch, leaf / chunks - span_begin, leaf % chunks * kColumnChunk, kColumnChunk,
                       payload);
      return true;
    };
  });
}

// True for sums that add up one value for each entry.
bool SumsEntries(const TileProgram& program) {
  return program.by_pattern &&
         std::all_of(program.roots.begin(), program.roots.end(),
                     [](const TileRoot& root) { return root.kind == TileRoot::Kind::kFull; });
}

// The nodes of such sums: a tile spans as many leaves as its buffers have room for, or the chunks of some
// rows.
Result<Matrix> ReduceEntries(const TileProgram& program, const Reduction& reduction, TileSteps& steps,
                             int64_t begin, int64_t end, int64_t span_begin) {
  const int64_t chunks = program.chunks, height = program.panel_rows, rows = steps.driver().rows();
  const int64_t entries = steps.sizes().entries;
  // Of buffers by row; values along entries have what room they need.
  const int64_t most_rows = HoldsSeveralLeaves(program) ? rows : steps.sizes().rows;
  return ReduceNodes(
      reduction, begin * chunks, end * chunks, [&, chunks, height, rows, entries, most_rows](int) {
        return [&, chunks, height, rows, entries, most_rows](int64_t first, int64_t last, double* payload) {
          std::unique_ptr<TileScratch> scratch = steps.Take();
          std::vector<simd::LaneTree> trees(program.roots.size());
          const int64_t stop = std::min(rows, CeilDivide(last, chunks) * height - span_begin);
          const auto end_of_leaf = [&](int64_t row) {
            return std::min(stop, ((row + span_begin) / height + 1) * height - span_begin);
          };
          for (int64_t row = first / chunks * height - span_begin, next;
               row < stop && !IsCancelled(reduction.cancelled); row = next) {
            next = end_of_leaf(row);
            // A part of a large leaf; of a row of several leaves all of it.
            if (chunks == 1 && steps.Count(row, next) > entries) next = steps.TileEnd(row, next);
            while (next < stop) {
              const int64_t more = end_of_leaf(next);
              if (more - row > most_rows || steps.Count(row, more) > entries) break;
              next = more;
            }
            steps.RunTile(*scratch, row, next, 0, nullptr);
            steps.AddToTrees(*scratch, row, next, span_begin, first, last, trees);
          }
          for (size_t r = 0; r < trees.size(); ++r) trees[r].Finish(payload + program.roots[r].offset);
          steps.GiveBack(std::move(scratch));
        };
      });
}

// The nodes of all panels.
Result<Matrix> ReducePanels(const TileProgram& program, const KernelCall& call, TileSteps& steps) {
  const bool whole = call.phase == Phase::kWhole;
  const TileSizes& sizes = steps.sizes();
  const int64_t rows = steps.driver().rows();
  const int64_t span_begin = whole ? 0 : call.row_begin, span_end = whole ? rows : call.row_end;
  const int64_t height = program.panel_rows;
  Reduction reduction = program.reduction;
  const int64_t chunks = program.chunks;
  reduction.leaf_cells = CeilDivide(height * sizes.row_work, chunks);
  reduction.cancelled = call.context.cancelled;
  const int64_t begin = span_begin == span_end ? 0 : CeilDivide(span_begin, height);
  const int64_t end = span_begin == span_end ? 0 : CeilDivide(span_end, height);
  if (program.cut_columns > 0)
    return ReduceChunks(program, reduction, steps, begin, end, span_begin, span_end);
  const bool several = HoldsSeveralLeaves(program);
  if (several)
    reduction.leaf_cells =
        std::min(reduction.leaf_cells, kCellsOfTask / LeavesTogether(sizes, steps.driver(), end - begin));
  if (chunks > 1 || (several && SumsEntries(program)))
    return ReduceEntries(program, reduction, steps, begin, end, span_begin);
  const int64_t most_leaves = std::max<int64_t>(1, kCellsOfTask / std::max<int64_t>(reduction.leaf_cells, 1));
  if (const Step* root = RootOfFewPlaces(program, steps.inputs(), end - begin); root != nullptr)
    return ReduceSparseLeaves(
        reduction, program.roots[0].k, begin, end, whole, [&](int64_t leaf, SparseLeaf& terms) {
          const int64_t first = leaf * height - span_begin,
                        last = std::min(span_end, (leaf + 1) * height) - span_begin;
          std::unique_ptr<TileScratch> scratch = steps.Take();
          for (int64_t row = first, next; row < last && !IsCancelled(reduction.cancelled); row = next) {
            next = steps.TileEnd(row, last);
            steps.RunTile(*scratch, row, next, row - first, nullptr);
            steps.AddTermsOf(*scratch, *root, row, next - row, terms);
          }
          steps.GiveBack(std::move(scratch));
        });
  const auto add_leaf = [&](TileScratch& scratch, int64_t leaf, double* payload) {
    const int64_t first = leaf * height - span_begin,
                  last = std::min(span_end, (leaf + 1) * height) - span_begin;
    if (several && steps.Count(first, last) <= sizes.entries) {
      if (first < scratch.held_begin || last > scratch.held_end) {
        // As many leaves as the buffers have room for, up to the end of what is one task.
        const int64_t stop = std::min(span_end, (leaf / most_leaves + 1) * most_leaves * height) - span_begin;
        int64_t hold = last;
        while (hold < stop && steps.Count(first, std::min(stop, hold + height)) <= sizes.entries)
          hold = std::min(stop, hold + height);
        steps.RunTile(scratch, first, hold, 0, nullptr);
        scratch.held_begin = first;
        scratch.held_end = hold;
      }
      FillIdentity(reduction, payload);
      steps.AddHeldEntries(scratch, first, last, payload);
      return true;
    }
    FillIdentity(reduction, payload);
    scratch.held_begin = scratch.held_end = 0;
    for (int64_t row = first, next; row < last && !IsCancelled(reduction.cancelled); row = next) {
      next = steps.TileEnd(row, last);
      steps.RunTile(scratch, row, next, row - first, payload);
    }
    for (size_t r = 0; r < program.roots.size(); ++r) steps.EndLeaf(scratch, static_cast<int>(r), payload);
    return true;
  };
  HEDDLE_ASSIGN_OR_RETURN(Matrix nodes, ReduceTasks(reduction, begin, end, [&]() -> LeafFunction {
                            return [&add_leaf, scratch = TakeShared(steps)](int64_t leaf, double* payload) {
                              return add_leaf(*scratch, leaf, payload);
                            };
                          }));
  for (size_t r = 0; r < program.roots.size(); ++r)
    steps.SeparateRoot(static_cast<int>(r), program.roots[r].offset, &nodes);
  return nodes;
}

// Steps for one call: those of an earlier one where some are idle.
class StepsOfCall {
 public:
  explicit StepsOfCall(const TileProgram& program) : program_(program), steps_(program.idle.Take()) {
    if (steps_ == nullptr) steps_ = std::make_shared<TileSteps>(program);
  }
  ~StepsOfCall() {
    if (steps_->Release()) program_.idle.GiveBack(std::move(steps_));
  }
  StepsOfCall(const StepsOfCall&) = delete;
  StepsOfCall& operator=(const StepsOfCall&) = delete;
  TileSteps& operator*() const { return *steps_; }

 private:
  const TileProgram& program_;
  std::shared_ptr<TileSteps> steps_;
};

}  // namespace

Status RunTiles(const TileProgram& program, const KernelCall& call, std::span<Value> results) {
  const bool stitch = program.fused.kind == FusionTemplate::kStitch;
  if (call.phase == Phase::kFinish)
    return stitch ? FinishStitch(program, call, results)
                  : FinishRoots(program, call.inputs[0]->matrix(), call, results);
  if (RunsOnDictionaries(program, call)) return RunDictionaries(program, call, results);
  const StepsOfCall used(program);
  TileSteps& steps = *used;
  HEDDLE_RETURN_IF_ERROR(steps.Prepare(call));
  if (RunsInPhases(program)) {
    HEDDLE_RETURN_IF_ERROR(RunLongRows(program, call, steps, results));
    return steps.failure();
  }
  if (stitch) {
    HEDDLE_RETURN_IF_ERROR(RunStitch(program, call, steps, results));
    return steps.failure();
  }
  if (!program.roles.reduces) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix result, RunRows(program, call, steps));
    results[0] = std::move(result);
    return steps.failure();
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix nodes, ReducePanels(program, call, steps));
  HEDDLE_RETURN_IF_ERROR(steps.failure());
  HEDDLE_ASSIGN_OR_RETURN(nodes, AddWideNodes(program, call, std::move(nodes)));
  if (call.phase != Phase::kPartial) return FinishRoots(program, nodes, call, results);
  if (program.fused.roots.size() == 1) {
    HEDDLE_ASSIGN_OR_RETURN(nodes, ListOfRoot(program.roots[0], std::move(nodes)));
  }
  results[0] = std::move(nodes);
  return OkStatus();
}

}  // namespace heddle::ops
