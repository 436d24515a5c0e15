// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/programs/fused_operator.h"
#include "ops/aggregate/aggregate.h"
#include "ops/base/cpu.h"
#include "ops/fused/program/body.h"
#include "ops/product/matmul.h"
#include "ops/reduction/reduction_tree.h"
#include "ops/region/region.h"

// A fused operator lowered to what happens on one tile of rows (docs/fusion.md, section 3). Plain data, made
// once for each operator; RunTiles (run_tiles.h) follows it.
namespace heddle::ops {

/// Rows of a value in the current tile.
struct TileRef {
  enum class Kind : uint8_t {
    kNone,
    kInput,       ///< Dense rows of an input.
    kBuffer,      ///< Dense rows.
    kResult,      ///< Rows of result `index`, or the values at its entries where it has the driver's pattern.
    kDriver,      ///< Values of the driver's entries.
    kPattern,     ///< A buffer with one value for each entry of the driver.
    kSaved,       ///< Rows of a value that one phase makes and a later one reads (lower/long_rows.h).
    kBackground,  ///< The background of each row of result `index` (rows/pattern_result.h).
  } kind = Kind::kNone;
  int index = 0;       ///< Input, result or buffer number; kPattern and kSaved count their own.
  int64_t column = 0;  ///< First column, of a column range.
  bool operator==(const TileRef&) const = default;
};
/// True for one value at each entry of the driver.
inline bool IsByEntry(const TileRef& ref) {
  return ref.kind == TileRef::Kind::kDriver || ref.kind == TileRef::Kind::kPattern;
}

/// What an input of a region is.
struct RegionOperand {
  enum class From : uint8_t {
    kTile,
    kWhole,     ///< Dense cells of an input needed whole.
    kRepeated,  ///< A whole row vector, repeated for every row of a tile.
    kScalar,
  } from = From::kTile;
  TileRef tile;
  int index = 0;  ///< kWhole: input; kRepeated: TileProgram::repeated; kScalar: body node.
};

struct Step {
  enum class Kind : uint8_t {
    kRegion,    ///< Calls a region.
    kDensify,   ///< Rows of a CSR input to a buffer.
    kWiden,     ///< Rows of a dense input of floats to a buffer.
    kRound,     ///< Each cell of `to` to the nearest float.
    kNarrow,    ///< `from` to the result, whose cells are floats.
    kExpand,    ///< A column vector, each cell `columns` times, to a buffer.
    kCopy,      ///< `columns` columns of `from` to `to` (cbind, gaps closed).
    kFoldRows,  ///< rowSums and its family of `from`, or of the CSR input `index`.
    kMultiply,  ///< `from` %*% the whole input `right`.
    kRoot,      ///< `from` (and `from_right`) into the payload of root `index`.
    // Along the entries of a CSR driver, to a kPattern buffer:
    kIntersect,    ///< From here on only entries that all `inputs` (CSR) share; of the driver and of them, to
                   ///< `outputs`.
    kGatherCells,  ///< Input `index` (dense or CSR, of the driver's shape) at each entry.
    kGatherColumn,  ///< The cell of a column vector in the entry's row.
    kSample,        ///< U %*% t(V): rows of input `index`, all of input `right`.
    kGatherRow,     ///< The cell of the whole row vector, input `index`, in the entry's column.
    kSpread,        ///< Dense rows of `from` at the entries and `background` in all other cells.
  } kind = Kind::kRegion;
  NodeId node = kNoNode;  ///< kFoldRows: the aggregate.
  int index = 0;  ///< Of the region or root; the input of kDensify, kWiden, a kMultiply or kFoldRows by
                  ///< entries (else -1).
  std::vector<RegionOperand> operands;  ///< kRegion
  std::vector<TileRef> outputs;         ///< kRegion: kNone is the payload of the root in output_roots.
  std::vector<int> output_roots;
  std::vector<NodeId> output_folds;  ///< kRegion: the row aggregate of each output; kNoNode: it is none.
  std::vector<int> inputs;           ///< kIntersect
  bool flat = false;                 ///< kRegion: one row of rows * columns cells.
  bool by_entries = false;           ///< kRegion: one cell for each entry of the driver.
  bool stream = false;               ///< kRegion: what it stores in the result goes past the caches.
  int64_t columns = 0;
  TileRef from, from_right, to;
  /// The column with the backgrounds of a `from` at the driver's entries (lower/row_background.h); kNone: 0.
  TileRef background;
  int right = -1;                                 ///< kMultiply: input
  AggregateKind aggregate = AggregateKind::kSum;  ///< kFoldRows
  bool reads_memory = false;                      ///< kFoldRows
  /// kMultiply: `from` at entries stands for a dense matrix, whose zeros count: 0 * Infinity is NaN. Skipping
  /// them gives the same bits only where `right` is finite.
  bool multiplies_zeros = false;
  int phase = 0;  ///< Of rows that are cut by columns (long_rows.h).
  /// Which cache lines of the next tile's rows of input `fetched` a kMultiply or kRoot prefetches while it
  /// computes: all, or the even or odd ones, where another step over the same rows prefetches the rest.
  enum class Fetch : uint8_t { kNothing, kEven, kOdd, kAll } fetch = Fetch::kNothing;
  TileRef fetched;
};

/// True if `step` reads the rows of `tile`.
inline bool Reads(const Step& step, const TileRef& tile) {
  const auto is_tile = [&](const RegionOperand& operand) {
    return operand.from == RegionOperand::From::kTile && operand.tile == tile;
  };
  return step.from == tile || step.from_right == tile || step.background == tile ||
         std::any_of(step.operands.begin(), step.operands.end(), is_tile);
}

/// A product of dense rows with so many columns that `right` is packed once for all tiles.
inline bool PacksRight(const Step& step) {
  return step.kind == Step::Kind::kMultiply && step.index < 0 && !IsByEntry(step.from) &&
         step.columns >= kWideProduct;
}

/// A reduction over all rows, or over one long row: where its accumulators (its payload) are, and what is
/// added to them.
struct TileRoot {
  enum class Kind : uint8_t {
    kFull,
    kColumns,
    kLanes,
    kVectors,
    kProduct,
    kMoments,  ///< Variances of an input: of a leaf, or a chunk of a long row, at once, when its last tile is
               ///< done; no step.
  } kind = Kind::kFull;
  NodeId node = kNoNode;
  int result = 0;  ///< Its place among the roots of the fused operator.
  AggregateKind aggregate = AggregateKind::kSum;
  Join join = Join::kSum;
  int64_t n = 0, k = 1;    ///< Columns of the operands.
  int64_t offset = 0;      ///< Of its payload, in doubles; a multiple of 8.
  int64_t width = 0;       ///< Doubles of its payload, as the root's own kernel has it.
  int64_t height = 0;      ///< Rows of a leaf, a power of two.
  int64_t padded = 0;      ///< kVectors: n rounded up to 8.
  int input = -1;          ///< kMoments
  bool of_cells = false;   ///< kMoments: of all cells (var, sd) or of a row, not of each column (colVars).
  bool symmetric = false;  ///< kProduct: t(X) %*% X; the upper half is enough, as the root's "finish" knows.
  /// It is the aggregate of each row of several column chunks: complete after `phase`, after which steps read
  /// it in `value`, a buffer of one cell. `result` is -1 where it is no result of the operator.
  bool of_rows = false;
  int phase = 0;
  TileRef value;
};

/// A full aggregate.
inline bool SumsAllCells(const TileRoot& root) {
  return root.kind == TileRoot::Kind::kFull || (root.kind == TileRoot::Kind::kMoments && root.of_cells);
}

class TileSteps;  // tile_steps.h

/// Prepared steps that no call uses just now. A call of a small operator takes less time than preparing its
/// steps, so the next call takes them from here. A copy of a program begins without any. Thread-safe.
class IdleTileSteps {
 public:
  IdleTileSteps() = default;
  IdleTileSteps(const IdleTileSteps&) {}
  IdleTileSteps& operator=(const IdleTileSteps&) { return *this; }
  /// nullptr where there are none.
  std::shared_ptr<TileSteps> Take();
  void GiveBack(std::shared_ptr<TileSteps> steps);

 private:
  static constexpr size_t kMost = 4;  ///< Threads that run the same small operator at once are few.
  std::mutex mutex_;
  std::vector<std::shared_ptr<TileSteps>> steps_;
};

struct TileProgram {
  FusedOperator fused;
  Processor processor;  ///< Whose tiles and loops these are.
  BodyRoles roles;
  std::vector<Region> regions;
  std::vector<std::shared_ptr<const RegionCode>> codes;  ///< Of `regions`.
  bool interpreted = false;                              ///< Some region is interpreted.
  std::vector<int64_t> buffers;                          ///< Columns of each.
  bool single = false;      ///< Matrices hold floats (docs/numerics.md, section 9).
  bool by_pattern = false;  ///< Cells are those at the entries of the CSR driver.
  int patterns = 0;         ///< kPattern buffers.
  /// By pattern: positions of the other CSR inputs whose entries the driver of a call has, too, as zeros
  /// where it has none of its own (LowerForDevice).
  std::vector<int> united;
  /// By pattern, and some values have a background that is not 0 (lower/row_background.h).
  bool has_background = false;
  std::vector<bool> patterned;  ///< By result: it has the driver's pattern; empty if none has.
  bool IsPatterned(int result) const { return !patterned.empty() && patterned[static_cast<size_t>(result)]; }
  struct Repeated {
    int input;
    int64_t columns;
  };
  std::vector<Repeated> repeated;
  std::vector<Step> steps;
  std::vector<TileRoot> roots;  ///< The reductions over all rows, then those of each long row.
  int64_t tile_rows = 0;
  int64_t panel_rows = 0;  ///< Rows of the smallest leaf; 0 without roots.
  int64_t chunks =
      1;  ///< Leaves of a row, where rows are longer than a column chunk (docs/numerics.md, section 2).
  int64_t cut_columns =
      0;  ///< Not 0: columns of rows of which a tile has some of one row; every step goes cell by cell.
  int phases = 1;                       ///< Passes over such rows.
  std::vector<std::vector<bool>> runs;  ///< By phase and step: whether it runs; empty if all do.
  int saved_arrays = 0;                 ///< How many values of TileRef::Kind::kSaved there are.
  Reduction reduction;                  ///< Of all payloads together; of a stitch each root has its own.
  mutable IdleTileSteps idle;
};

/// True for a product whose chains are of floats (docs/numerics.md, section 9). Its right operand, and rows
/// of inputs on its left, are stored as floats; rows in buffers are floats widened.
inline bool MultipliesSingles(const TileProgram& program, const Step& step) {
  return program.single && step.kind == Step::Kind::kMultiply && step.columns > kFewColumns;
}

/// True for t(X) %*% Y whose chains are of floats: its operands are those of MultipliesSingles.
inline bool AddsSingles(const TileProgram& program, const TileRoot& root) {
  return program.single && root.kind == TileRoot::Kind::kProduct;
}

inline bool HasWideProduct(const TileProgram& program) {
  return std::any_of(program.steps.begin(), program.steps.end(), PacksRight);
}

/// kUnimplemented, with the reason, for a body that cannot be lowered.
Result<TileProgram> Lower(FusedOperator fused, const Processor& processor = {});

/// The same for a device. It takes more: cells where some of several CSR inputs have entries (X + Y), all of
/// which the driver of a call is given (TileProgram::united); and products of CSR rows longer than a column
/// chunk with up to eight columns.
Result<TileProgram> LowerForDevice(FusedOperator fused);

}  // namespace heddle::ops
