// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/run/run_long_rows.h"

#include <algorithm>
#include <cmath>

#include "core/values/panels.h"
#include "ops/aggregate/aggregate.h"
#include "ops/base/parallel.h"
#include "ops/cells/storage.h"
#include "ops/fused/run/body_rows.h"
#include "ops/fused/run/run_tiles.h"
#include "ops/reduction/reduction_tree.h"
#include "ops/simd/aggregate.h"

namespace heddle::ops {
namespace {

// What all phases read, save and write of one group of rows, so that it stays in the last-level cache.
constexpr int64_t kGroupBytes = 8 << 20;
// Tasks of one phase for each thread.
constexpr int64_t kTasksOfThread = 4;

class LongRows {
 public:
  LongRows(const TileProgram& program, const KernelCall& call, TileSteps& steps)
      : program_(program),
        call_(call),
        steps_(steps),
        rows_(steps.driver().rows()),
        chunks_(CeilDivide(program.cut_columns, kColumnChunk)),
        first_row_(call.phase == Phase::kPartial ? call.row_begin : 0),
        width_(WidthOf(program)) {}

  Status Run(std::span<Value> results) {
    HEDDLE_RETURN_IF_ERROR(MakeRows());
    const int64_t group = GroupRows();
    payloads_ = AlignedArray(rows_ * chunks_ * width_ + 8);
    MakeColumnLeaves();
    folds_.assign(static_cast<size_t>(group) * program_.roots.size(), 0.0);
    for (int i = 0; i < program_.saved_arrays; ++i) saved_.emplace_back(group * program_.cut_columns + 8);
    for (int64_t row = 0; row < rows_ && !IsCancelled(call_.context.cancelled); row += group) {
      for (int i = 0; i < program_.saved_arrays; ++i)
        steps_.SaveIn(i, saved_[static_cast<size_t>(i)].data(), row);
      const int64_t end = std::min(rows_, row + group);
      for (int phase = 0; phase < program_.phases; ++phase) {
        RunPhase(phase, row, end);
        FinishFolds(phase, row, end);
      }
    }
    if (IsCancelled(call_.context.cancelled)) return Cancelled("cancelled");
    return Close(results);
  }

 private:
  static bool SumsColumns(const TileRoot& root) { return root.kind == TileRoot::Kind::kColumns; }
  // Doubles of the payload that each chunk of a row has of its own.
  static int64_t WidthOf(const TileProgram& program) {
    int64_t width = 0;
    for (const TileRoot& root : program.roots)
      if (!SumsColumns(root)) width = std::max(width, (root.offset + root.width + 7) / 8 * 8);
    return width;
  }
  const ValueInfo& InfoOf(size_t result) const {
    return program_.fused.body[program_.fused.roots[result]].info;
  }
  bool IsReduced(size_t result) const {
    return program_.roles.nodes[static_cast<size_t>(program_.fused.roots[result])] == BodyRole::kRoot;
  }

  Status MakeRows() {
    rows_of_results_.resize(program_.fused.roots.size());
    for (size_t i = 0; i < rows_of_results_.size(); ++i) {
      if (IsReduced(i)) continue;
      HEDDLE_ASSIGN_OR_RETURN(rows_of_results_[i],
                              Matrix::Dense(rows_, InfoOf(i).shape.columns, InfoOf(i).element_type));
      steps_.WriteTo(i, rows_of_results_[i].mutable_data());
    }
    return OkStatus();
  }

  int64_t GroupRows() const {
    if (program_.phases == 1) return rows_;
    int64_t full = program_.saved_arrays;
    for (size_t i = 0; i < program_.roles.inputs.size(); ++i)
      full += program_.roles.inputs[i] == BodyRole::kRows && steps_.inputs()[i].columns() > 1 ? 1 : 0;
    for (size_t i = 0; i < rows_of_results_.size(); ++i) full += rows_of_results_[i].columns() > 1 ? 1 : 0;
    return RowsOfGroup(rows_, program_.cut_columns, full, ParallelThreads());
  }

  double* PayloadOf(int64_t row, int64_t chunk) {
    return payloads_.data() + (row * chunks_ + chunk) * width_;
  }
  double* FoldsOf(int64_t row_in_group) {
    return folds_.data() + static_cast<size_t>(row_in_group) * program_.roots.size();
  }

  // How many leaves (panels of rows) the column sums of a root have on this rank.
  int64_t Leaves(const TileRoot& root) const {
    return rows_ == 0 ? 0 : (first_row_ + rows_ - 1) / root.height - first_row_ / root.height + 1;
  }
  void MakeColumnLeaves() {
    column_leaves_.resize(program_.roots.size());
    for (size_t r = 0; r < program_.roots.size(); ++r) {
      const TileRoot& root = program_.roots[r];
      if (!SumsColumns(root)) continue;
      const int64_t cells = Leaves(root) * root.width;
      column_leaves_[r] = AlignedArray(cells + 8);
      FillPayload(column_leaves_[r].data(), cells, simd::StartOf(FoldOf(root.aggregate)));
      steps_.SumColumnsIn(r, column_leaves_[r].data(), first_row_);
    }
  }

  // True if the phase adds to column sums: then each task takes some columns of all rows of the group, so
  // that no two tasks add to one sum. The columns are a whole chunk if the phase also folds rows, cell after
  // cell.
  bool GoesDownColumns(int phase, int64_t* columns) const {
    bool down = false, folds = false;
    for (const TileRoot& root : program_.roots) {
      if (root.phase != phase) continue;
      (SumsColumns(root) ? down : folds) = true;
    }
    *columns = folds ? kColumnChunk : kTileColumns;
    return down;
  }
  void RunDownColumns(int phase, int64_t begin, int64_t end, int64_t columns) {
    ParallelFor(CeilDivide(program_.cut_columns, columns), 1, [&](int64_t first, int64_t last) {
      std::unique_ptr<TileScratch> scratch = steps_.Take();
      for (int64_t column = first * columns; column < std::min(last * columns, program_.cut_columns);
           column += columns) {
        const int64_t chunk = column / kColumnChunk;
        for (int64_t row = begin; row < end && !IsCancelled(call_.context.cancelled); ++row) {
          if (phase == 0 && column % kColumnChunk == 0) FillIdentities(PayloadOf(row, chunk));
          steps_.SetPhase(*scratch, phase, FoldsOf(row - begin));
          steps_.RunColumns(*scratch, row, column, columns, PayloadOf(row, chunk));
          SetMoments(phase, row, chunk);
        }
      }
      steps_.GiveBack(std::move(scratch));
    });
  }

  void RunPhase(int phase, int64_t begin, int64_t end) {
    int64_t columns = 0;
    if (GoesDownColumns(phase, &columns)) return RunDownColumns(phase, begin, end, columns);
    // If no step of the phase works on full rows, they run once for each row.
    const bool has_full_steps = HasFullSteps(phase);
    const int64_t chunks = has_full_steps || HasMoments(phase) ? chunks_ : 1;
    ParallelFor((end - begin) * chunks, 1, [&](int64_t first, int64_t last) {
      std::unique_ptr<TileScratch> scratch = steps_.Take();
      for (int64_t k = first; k < last && !IsCancelled(call_.context.cancelled); ++k) {
        const int64_t row = begin + k / chunks, chunk = k % chunks;
        if (phase == 0) FillIdentities(PayloadOf(row, chunk));
        steps_.SetPhase(*scratch, phase, FoldsOf(row - begin));
        if (has_full_steps || chunk == 0)
          steps_.RunColumns(*scratch, row, chunk * kColumnChunk, has_full_steps ? kColumnChunk : 1,
                            PayloadOf(row, chunk));
        SetMoments(phase, row, chunk);
      }
      steps_.GiveBack(std::move(scratch));
    });
  }

  bool HasFullSteps(int phase) const {
    for (size_t s = 0; s < program_.steps.size(); ++s)
      if ((program_.runs.empty() || program_.runs[static_cast<size_t>(phase)][s]) &&
          program_.steps[s].columns > 1)
        return true;
    return false;
  }

  bool HasMoments(int phase) const {
    return std::any_of(program_.roots.begin(), program_.roots.end(), [&](const TileRoot& root) {
      return root.phase == phase && root.kind == TileRoot::Kind::kMoments;
    });
  }
  // Of variances whose phase this is: the chunk is in the caches, where the tiles have left it.
  void SetMoments(int phase, int64_t row, int64_t chunk) {
    const int64_t begin = chunk * kColumnChunk, end = std::min(begin + kColumnChunk, program_.cut_columns);
    for (const TileRoot& root : program_.roots) {
      if (root.phase != phase || root.kind != TileRoot::Kind::kMoments) continue;
      const auto input = static_cast<size_t>(root.input);
      PanelCells cells(program_.single ? steps_.singles()[input] : steps_.inputs()[input]);
      CellMoments(cells.Get(row, row + 1, begin, end), end - begin, {}, PayloadOf(row, chunk) + root.offset);
    }
  }

  void FillIdentities(double* payload) const {
    for (const TileRoot& root : program_.roots)
      if (!SumsColumns(root) && root.kind != TileRoot::Kind::kMoments)
        FillPayload(payload + root.offset, root.width, simd::StartOf(FoldOf(root.aggregate)));
  }

  // Joins the chunks of rows [begin, end) for the row aggregates that the phase has completed.
  void FinishFolds(int phase, int64_t begin, int64_t end) {
    for (size_t r = 0; r < program_.roots.size(); ++r) {
      const TileRoot& root = program_.roots[r];
      if (!root.of_rows || root.phase != phase) continue;
      PayloadStack stack(root.join, root.width, CommonLevel(0, chunks_));
      const bool single = program_.fused.body[root.node].info.element_type == ElementType::kFloat32;
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
          std::copy_n(PayloadOf(row, chunk) + root.offset, root.width, stack.Next(chunk));
          stack.Push();
        }
        const double* const joined = stack.Finish();
        double value = IsSpread(root.aggregate) ? SpreadOf(root.aggregate, joined[0], joined[2])
                                                : simd::FoldLanes(FoldOf(root.aggregate), joined);
        if (root.aggregate == AggregateKind::kMean) value = value / static_cast<double>(root.n);
        if (!std::isfinite(value)) steps_.CorrectFold(root.node, row, row + 1, &value);
        if (single) value = static_cast<float>(value);
        FoldsOf(row - begin)[r] = value;
        if (root.result < 0) continue;
        Matrix& result = rows_of_results_[static_cast<size_t>(root.result)];
        if (single)
          result.mutable_data<float>()[row] = static_cast<float>(value);
        else
          result.mutable_data()[row] = value;
      }
    }
  }

  // The nodes of a reduction over all rows. Its leaves are the chunks of rows, or, of column sums, panels of
  // rows.
  Result<Matrix> NodesOf(size_t r) {
    const TileRoot& root = program_.roots[r];
    const Reduction reduction{.join = root.join,
                              .width = root.width,
                              .leaf_cells = root.width,
                              .cancelled = call_.context.cancelled};
    const int64_t first_leaf = first_row_ / root.height;
    if (SumsColumns(root))
      return ReduceLeaves(
          reduction, first_leaf, first_leaf + Leaves(root), [&](int64_t leaf, double* payload) {
            std::copy_n(column_leaves_[r].data() + (leaf - first_leaf) * root.width, root.width, payload);
            return true;
          });
    return ReduceLeaves(reduction, first_row_ * chunks_, (first_row_ + rows_) * chunks_,
                        [&](int64_t leaf, double* payload) {
                          std::copy_n(PayloadOf(leaf / chunks_ - first_row_, leaf % chunks_) + root.offset,
                                      root.width, payload);
                          return true;
                        });
  }

  Status Close(std::span<Value> results) {
    for (size_t i = 0; i < rows_of_results_.size(); ++i) {
      if (IsReduced(i)) continue;
      if (InfoOf(i).format == Format::kSparse) {
        HEDDLE_ASSIGN_OR_RETURN(rows_of_results_[i], AsSparse(rows_of_results_[i]));
      }
      results[i] = std::move(rows_of_results_[i]);
    }
    for (size_t r = 0; r < program_.roots.size(); ++r) {
      const TileRoot& root = program_.roots[r];
      if (root.of_rows) continue;
      HEDDLE_ASSIGN_OR_RETURN(Matrix nodes, NodesOf(r));
      HEDDLE_RETURN_IF_ERROR(
          CloseRoot(program_, root, std::move(nodes), call_, &results[static_cast<size_t>(root.result)]));
    }
    return OkStatus();
  }

  const TileProgram& program_;
  const KernelCall& call_;
  TileSteps& steps_;
  const int64_t rows_, chunks_, first_row_, width_;
  std::vector<Matrix> rows_of_results_;      // By result.
  AlignedArray payloads_;                    // By row and chunk: the payload of all roots but column sums.
  std::vector<AlignedArray> column_leaves_;  // By root: the leaves of column sums.
  std::vector<double> folds_;  // By row of the group and root: row aggregates that are complete.
  std::vector<AlignedArray> saved_;
};

}  // namespace

int64_t RowsOfGroup(int64_t rows, int64_t columns, int64_t full, int threads) {
  const int64_t in_cache =
      kGroupBytes / (std::max<int64_t>(full, 1) * columns * static_cast<int64_t>(sizeof(double)));
  const int64_t for_threads = CeilDivide(kTasksOfThread * threads, CeilDivide(columns, kColumnChunk));
  return std::clamp<int64_t>(std::max(in_cache, for_threads), 1, std::max<int64_t>(rows, 1));
}

bool RunsInPhases(const TileProgram& program) {
  if (program.cut_columns == 0) return false;
  return !program.roles.reduces || program.phases > 1 || program.fused.kind == FusionTemplate::kStitch;
}

Status RunLongRows(const TileProgram& program, const KernelCall& call, TileSteps& steps,
                   std::span<Value> results) {
  return LongRows(program, call, steps).Run(results);
}

}  // namespace heddle::ops
