// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/lower/tile_sizes.h"

#include <algorithm>

#include "core/values/panels.h"
#include "ops/base/parallel.h"
#include "ops/fused/rows/entries.h"
#include "ops/sparse/gathered_rows.h"
#include "ops/sparse/sparse_leaves.h"

namespace heddle::ops {
namespace {

// Entries of a tile along a CSR driver: its buffers stay in the first-level cache.
constexpr int64_t kTileEntries = 2048;
// Rows of a right operand that one tile gathers twice: they stay in the second-level cache, where those of
// the next tile come meanwhile.
constexpr int64_t kGatheredBytes = 256 << 10;
constexpr int64_t kLeastEntries = 32;
// Rows of X of a paired product in one tile: both tiles stay in the first-level cache.
constexpr int64_t kPairedTileBytes = 12 << 10;
// Entries of a CSR input in one tile: they are read twice.
constexpr int64_t kSparseTileBytes = 32 << 10;
// So many products take as long as a dense cell that is read and added.
constexpr int64_t kProductsOfCell = 8;
// Enough tasks to keep threads busy to the end.
constexpr int64_t kTasksOfThread = 16;
// Finding an entry of a CSR row and its partners costs as much as so many dense cells.
constexpr int64_t kWorkOfEntry = 4;
// Cells that only repeat their row's default: so many are as much work as one that is computed.
constexpr int64_t kCellsOfWork = 8;

const Matrix& Driver(const TileProgram& program, const std::vector<Matrix>& inputs) {
  return inputs[static_cast<size_t>(program.fused.driver)];
}

// As many rows as the program says, fewer where threads would wait for the last tiles of wide products, or
// where CSR inputs that products read have many entries.
int64_t TileRows(const TileProgram& program, const PairedProduct& pair, const std::vector<Matrix>& inputs) {
  int64_t rows = program.tile_rows;
  // A worker may own no rows.
  if (const int64_t all = Driver(program, inputs).rows();
      all > 0 && program.panel_rows == 0 && HasWideProduct(program)) {
    const int64_t threads = ParallelThreads();
    const int64_t tiles = CeilDivide(CeilDivide(all, rows), threads) * threads;
    rows = std::min(rows, CeilDivide(CeilDivide(all, tiles), kRowsTogether) * kRowsTogether);
  }
  if (pair.root >= 0 && !pair.same_rows) {
    const int64_t cell_bytes = program.single ? 4 : 8,
                  row_bytes = cell_bytes * program.steps[static_cast<size_t>(pair.root)].columns;
    rows = std::min(rows, FloorPowerOfTwo(kPairedTileBytes / row_bytes));
  }
  for (const Step& step : program.steps) {
    const int input = step.kind == Step::Kind::kMultiply ? step.index
                      : step.kind == Step::Kind::kRoot   ? step.right
                                                         : -1;
    if (input < 0) continue;
    const Matrix& x = inputs[static_cast<size_t>(input)];
    const int64_t row_bytes = 12 * (x.stored() / std::max<int64_t>(x.rows(), 1)) + 8;
    rows = std::clamp(FloorPowerOfTwo(std::max<int64_t>(1, kSparseTileBytes / row_bytes)), kRowsTogether,
                      std::max(kRowsTogether, rows));
  }
  return rows;
}

// True if products at the driver's entries read V by blocks. Not where a right product reads V's rows a
// second time: they are in the second-level cache then, row after row.
bool IsBlocked(const TileProgram& program, const std::vector<Matrix>& inputs) {
  bool blocked = false;
  for (const Step& step : program.steps) {
    if (step.kind == Step::Kind::kMultiply && IsByEntry(step.from)) return false;
    blocked |= step.kind == Step::Kind::kSample &&
               GatheredBlock(Driver(program, inputs), inputs[static_cast<size_t>(step.right)]) > 0;
  }
  return blocked;
}

int64_t TileEntries(const TileProgram& program, bool blocked) {
  if (!program.by_pattern) return 0;
  if (blocked || (program.has_background && HasWideProduct(program))) return kEntriesTogether;
  int64_t entries = kTileEntries;
  for (const Step& step : program.steps)
    if (step.kind == Step::Kind::kMultiply && IsByEntry(step.from))
      entries = std::clamp(kGatheredBytes / (8 * step.columns), kLeastEntries, kTileEntries);
  return entries;
}

// What tiles read of a row: all its cells, or the entries of a CSR input that no step makes dense.
int64_t CellsOfRow(const TileProgram& program, const std::vector<Matrix>& inputs, size_t input) {
  const Matrix& x = inputs[input];
  const bool by_entries =
      x.IsSparse() && std::none_of(program.steps.begin(), program.steps.end(), [&](const Step& step) {
        return step.kind == Step::Kind::kDensify && step.index == static_cast<int>(input);
      });
  return by_entries ? x.stored() / std::max<int64_t>(x.rows(), 1) + 1 : x.columns();
}

int64_t RowWork(const TileProgram& program, const std::vector<Matrix>& inputs) {
  if (program.by_pattern) {
    int64_t work_of_entry = kWorkOfEntry;
    for (const Step& step : program.steps)
      if (step.kind == Step::Kind::kSample)
        work_of_entry += inputs[static_cast<size_t>(step.index)].columns();
    const Matrix& driver = Driver(program, inputs);
    const int64_t cells = program.has_background ? driver.columns() / kCellsOfWork : 0;
    return (driver.stored() / std::max<int64_t>(driver.rows(), 1) + 1) * work_of_entry + cells;
  }
  int64_t widest = 1;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (program.roles.inputs[i] == BodyRole::kRows) widest = std::max(widest, CellsOfRow(program, inputs, i));
  for (const Step& step : program.steps)
    if (PacksRight(step))
      widest = std::max(widest, inputs[static_cast<size_t>(step.right)].cells() / kProductsOfCell);
  return widest;
}

}  // namespace

TileSizes ChooseTileSizes(const TileProgram& program, const PairedProduct& pair,
                          const std::vector<Matrix>& inputs) {
  // Rows of a result that go straight to it may be cut anywhere.
  const bool anywhere = program.by_pattern && program.roots.empty() && program.buffers.empty();
  const bool blocked = IsBlocked(program, inputs);
  int64_t rows = TileRows(program, pair, inputs);
  if (blocked && program.panel_rows == 0) {
    const Matrix& driver = Driver(program, inputs);
    rows = std::max(rows, FloorPowerOfTwo(std::max<int64_t>(
                              1, kEntriesTogether / (driver.stored() / driver.rows() + 1))));
  }
  return {rows, TileEntries(program, blocked), anywhere ? 1 : kRowsTogether, RowWork(program, inputs),
          blocked};
}

int64_t LeavesTogether(const TileSizes& sizes, const Matrix& driver, int64_t leaves) {
  if (!sizes.blocked) return 1;
  const int64_t entries_of_leaf = driver.stored() / std::max<int64_t>(1, leaves) + 1;
  return FloorPowerOfTwo(std::max<int64_t>(
      1, std::min(sizes.entries / entries_of_leaf, leaves / (kTasksOfThread * ParallelThreads()))));
}

const Step* RootOfFewPlaces(const TileProgram& program, const std::vector<Matrix>& inputs, int64_t leaves) {
  if (program.roots.size() != 1 || program.reduction.join != Join::kSum) return nullptr;
  const TileRoot& root = program.roots[0];
  const auto step = std::find_if(program.steps.begin(), program.steps.end(),
                                 [](const Step& s) { return s.kind == Step::Kind::kRoot; });
  if (step == program.steps.end()) return nullptr;
  const bool by_entry = IsByEntry(step->from);
  const bool by_places = root.kind == TileRoot::Kind::kVectors ||
                         (root.kind == TileRoot::Kind::kColumns && by_entry && root.n > 8);
  if (!by_places || (step->right < 0 && !by_entry)) return nullptr;
  const Matrix& x = step->right >= 0 ? inputs[static_cast<size_t>(step->right)] : Driver(program, inputs);
  return AreSparseLeaves(x.stored(), leaves, program.reduction.width / root.k, root.k) ? &*step : nullptr;
}

}  // namespace heddle::ops
