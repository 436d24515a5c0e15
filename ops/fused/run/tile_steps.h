// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/status.h"
#include "core/values/matrix.h"
#include "ops/base/kernel.h"
#include "ops/base/thread_slots.h"
#include "ops/elementwise/widened_rows.h"
#include "ops/fused/lower/tile_sizes.h"
#include "ops/fused/program/tile_program.h"
#include "ops/fused/rows/background_rows.h"
#include "ops/fused/rows/entries.h"
#include "ops/fused/rows/paired_product.h"
#include "ops/fused/run/body_rows.h"
#include "ops/fused/run/body_scalars.h"
#include "ops/fused/run/tile_inputs.h"
#include "ops/product/matmul.h"
#include "ops/product/matmul_gemm.h"
#include "ops/product/transposed_singles.h"
#include "ops/reduction/lane_tree.h"
#include "ops/reduction/reduction_tree.h"
#include "ops/simd/prefetch.h"
#include "ops/sparse/gather_cells.h"

namespace heddle::ops {

/// Columns of a tile of rows that are cut by columns, a multiple of 8: its buffers stay in the caches. No
/// order depends on it.
constexpr int64_t kTileColumns = 1 << 13;

/// Arguments of a region's call, from tile to tile: addresses that stay, and which of them move.
struct RegionArguments {
  std::vector<const double*> inputs;
  std::vector<double*> outputs;
  std::vector<int64_t> input_strides, output_strides;
  std::vector<size_t> moving_inputs, moving_outputs;

  void Clear() {
    inputs.clear();
    outputs.clear();
    input_strides.clear();
    output_strides.clear();
    moving_inputs.clear();
    moving_outputs.clear();
  }
};

/// Memory of one thread's tile.
struct TileScratch {
  int64_t call = 0;  ///< Of TileSteps: for which `arguments` are right.
  int64_t room = 0;  ///< Doubles of `buffers`.
  AlignedArray buffers, patterns;
  int64_t entries = 0;                   ///< Room of each of `patterns`.
  std::map<int, SpreadRow> spread_rows;  ///< By input.
  RowPattern pattern;                    ///< Of the tile's rows: the driver's, or what kIntersect left of it.
  int64_t pattern_row = 0;               ///< Its first row.
  std::vector<int64_t> offsets;          ///< Of kIntersect.
  std::vector<int32_t> columns;
  std::vector<RegionArguments> arguments;  ///< By step.
  const double* waiting = nullptr;  ///< Rows of X (floats, too) whose part of a paired root is still to
                                    ///< be added.
  int64_t waiting_rows = 0;
  int64_t first_column = 0, width = 0;   ///< Of the tile, where they are cut by columns.
  size_t phase = 0;                      ///< Likewise.
  std::vector<double> cells;             ///< By result: of one column, in tiles that are not the row's first.
  int64_t held_begin = 0, held_end = 0;  ///< Rows whose values at the driver's entries are in `patterns`.
  std::vector<float> singles, right_singles;  ///< Rows of floats that buffers have as doubles, for a product.
  std::map<int, TransposedSingles> chains;    ///< By root: of its leaf, those that have not ended.
  std::vector<double> leaf_sums;              ///< Eight lanes for each leaf of a tile.
  FilledRows filled;                          ///< What a step reads along entries.
  std::vector<double> spread;                 ///< Dense rows of it.
  /// Rows from `row` on, as far as the tile goes.
  RowPattern PatternAt(int64_t row) const;
  Entries EntriesAt(const double* values, int64_t row) const;
};

/// The steps of a tile program over the operands of a call: what a tile computes, whatever rows it has. One
/// call after the other may use them.
class TileSteps {
 public:
  /// `program` outlives it.
  explicit TileSteps(const TileProgram& program);
  ~TileSteps();
  /// Before a call.
  Status Prepare(const KernelCall& call);
  /// After a call: lets go of its operands. False if what is left takes so much memory, or may hold so much
  /// of the call, that it is for no other one.
  bool Release();

  const TileSizes& sizes() const { return sizes_; }
  const std::vector<Matrix>& inputs() const { return inputs_.doubles; }
  const Matrix& driver() const { return inputs_.doubles[static_cast<size_t>(program_.fused.driver)]; }
  /// Floats of the inputs that tiles read.
  const std::vector<Matrix>& singles() const { return inputs_.singles; }
  /// Entries of the driver.
  int64_t Count(int64_t row, int64_t row_end) const {
    return driver().row_offsets()[row_end] - driver().row_offsets()[row];
  }
  /// Where the rows of result `i` go; of a PatternResult the values of its entries, and its background.
  void WriteTo(size_t i, double* cells, double* background = nullptr) {
    results_[i] = cells;
    background_[i] = background;
  }

  /// Looks at results of the row aggregate `fold` once more, rows [row, row_end), where sums that are
  /// infinite or NaN should not be: out[0] is that of `row`.
  void CorrectFold(NodeId fold, int64_t row, int64_t row_end, double* out) const;
  /// What went wrong in tiles, after the last one.
  Status failure() const;

  std::unique_ptr<TileScratch> Take();
  void GiveBack(std::unique_ptr<TileScratch> scratch);

  /// End of the tile that begins at `row`, at most `last`.
  int64_t TileEnd(int64_t row, int64_t last) const;
  /// All steps; roots are added to `payload` unless it is null. `row_in_panel`: the place of the first row in
  /// the leaf of every root, if it is taken modulo the rows of a leaf.
  void RunTile(TileScratch& scratch, int64_t row, int64_t row_end, int64_t row_in_panel,
               double* payload) const;
  /// The array of saved value `i` (TileRef::Kind::kSaved), whose first row is row `first_row` of the call.
  void SaveIn(int i, double* cells, int64_t first_row) {
    saved_[static_cast<size_t>(i)] = cells;
    first_saved_row_ = first_row;
  }
  /// The leaves of root `r`, sums of columns longer than a column chunk beside other results: one after the
  /// other, that of row `first_row` of all rows, the first of this rank, first.
  void SumColumnsIn(size_t r, double* leaves, int64_t first_row) { column_leaves_[r] = {leaves, first_row}; }
  /// What RunColumns runs from now on, and the aggregates of its row that there are: by root.
  void SetPhase(TileScratch& scratch, int phase, const double* folds) const;
  /// All steps on at most so many columns of a row (TileProgram::cut_columns); `payload` is the leaf's, or
  /// that of these columns, of which there are kTileColumns at most.
  void RunColumns(TileScratch& scratch, int64_t row, int64_t first_column, int64_t most_columns,
                  double* payload) const;
  /// The last rows of a leaf of root `root` that its payload lacks: those that no further product took along,
  /// and chains of floats that have not ended.
  void EndLeaf(TileScratch& scratch, int root, double* payload) const;
  /// Sums of CSR times several columns have the cells of a place together in payloads (AddSparseProduct), not
  /// in nodes: puts them where the root's "finish" looks, the payload of root `r` beginning at `offset`.
  void SeparateRoot(int r, int64_t offset, Matrix* nodes) const;
  /// The root of few places (RootOfFewPlaces), after RunTile without a payload.
  void AddTermsOf(TileScratch& scratch, const Step& root, int64_t row, int64_t rows, SparseLeaf& terms) const;
  /// Roots of rows [first, last) of those held.
  void AddHeldEntries(TileScratch& scratch, int64_t first, int64_t last, double* payload) const;
  /// Sums of the tile of rows [row, row_end), a part of one leaf or whole ones, as far as they belong to
  /// leaves [begin, end). Row 0 is row `span_begin` of all.
  void AddToTrees(TileScratch& scratch, int64_t row, int64_t row_end, int64_t span_begin, int64_t begin,
                  int64_t end, std::vector<simd::LaneTree>& trees) const;

 private:
  struct Place {
    double* cells = nullptr;
    int64_t stride = 0;
  };
  Place Locate(TileScratch& scratch, const TileRef& ref, int64_t row) const;
  // Where a tile that begins at `row` adds to root `r`.
  double* PayloadOf(const TileScratch& scratch, int r, int64_t row, double* payload) const;
  // The entries of the step's left operand, valid until the next call; rows whose background is not 0 have
  // all their cells.
  Entries LeftEntries(TileScratch& scratch, const Step& step, int64_t row, int64_t rows) const;
  // Of what has so many columns, those of the tile.
  int64_t ColumnsOf(const TileScratch& scratch, int64_t columns) const {
    return program_.cut_columns > 0 && columns > 1 ? scratch.width : columns;
  }
  bool IsFull(int root) const {
    return root >= 0 && program_.roots[static_cast<size_t>(root)].kind == TileRoot::Kind::kFull;
  }
  static int64_t FirstColumn(const TileScratch& scratch, int64_t columns) {
    return columns > 1 ? scratch.first_column : 0;
  }
  // What Take hands out, for this call.
  void Bind(TileScratch& scratch) const;
  void BindRegion(TileScratch& scratch, const Step& step, RegionArguments* arguments) const;
  void MakeRoom(TileScratch& scratch, int64_t entries) const;
  void CallRegion(TileScratch& scratch, size_t s, int64_t row, int64_t rows, int64_t row_in_panel,
                  double* payload) const;
  void Intersect(TileScratch& scratch, const Step& step, int64_t row, int64_t row_end) const;
  void Densify(TileScratch& scratch, const Step& step, int64_t row, int64_t row_end) const;
  void CorrectFolds(const Step& step, const RegionArguments& arguments, int64_t row, int64_t rows) const;
  void FoldRows(TileScratch& scratch, const Step& step, int64_t row, int64_t rows) const;
  simd::Prefetch ToFetch(const Step& step, const Place& x, int64_t rows) const;
  int64_t EntriesAhead(const TileScratch& scratch, const Matrix& right, int64_t row, int64_t row_end) const;
  void Multiply(TileScratch& scratch, size_t s, int64_t row, int64_t row_end) const;
  struct SingleRows {
    const float* cells = nullptr;
    int64_t stride = 0;
  };
  // body(cells, stride, row, rows) for rows of a tile, `row` counted from its first: all at once, or those of
  // an input of floats piece by piece, widened.
  template <typename Body>
  void EachTileRows(TileScratch& scratch, const TileRef& ref, int64_t row, int64_t rows, int64_t columns,
                    const Body& body) const {
    if (ReadsSingles(ref))
      return EachRows(inputs_.singles[static_cast<size_t>(ref.index)], row, row + rows, ref.column, columns,
                      body);
    const Place place = Locate(scratch, ref, row);
    body(static_cast<const double*>(place.cells), place.stride, int64_t{0}, rows);
  }
  // True for rows of an input of floats.
  bool ReadsSingles(const TileRef& ref) const { return program_.single && ref.kind == TileRef::Kind::kInput; }
  // body(cells) with the cells at a place as they are stored there.
  template <typename Body>
  void WithCells(const TileRef& ref, const Place& place, const Body& body) const {
    if (ReadsSingles(ref)) return body(reinterpret_cast<const float*>(place.cells));
    body(static_cast<const double*>(place.cells));
  }
  SingleRows SinglesOf(TileScratch& scratch, const TileRef& ref, int64_t row, int64_t rows, int64_t columns,
                       std::vector<float>& room) const;
  void MultiplySingles(TileScratch& scratch, size_t s, int64_t row, int64_t row_end) const;
  // The left operand, which is at entries, must be multiplied as dense rows (Step::multiplies_zeros).
  void PrepareSpread(size_t s);
  bool MustSpread(TileScratch& scratch, size_t s, int64_t row, int64_t rows) const;
  void MultiplySpread(TileScratch& scratch, size_t s, int64_t row, int64_t rows) const;
  void MultiplyAndAdd(TileScratch& scratch, const Step& step, const NarrowRight& right, int64_t row,
                      int64_t rows, double* payload) const;
  // True if rows of that root wait for the next product.
  bool IsPaired(int root) const {
    return pair_.root >= 0 && !pair_.same_rows &&
           program_.steps[static_cast<size_t>(pair_.root)].index == root;
  }
  void AddWaiting(TileScratch& scratch, double* payload) const;
  void AddSingles(TileScratch& scratch, const Step& step, int64_t row, int64_t rows, int64_t row_in_leaf,
                  double* out) const;
  void AddToRoot(TileScratch& scratch, const Step& step, int64_t row, int64_t rows, int64_t row_in_panel,
                 double* payload) const;

  static constexpr size_t kNobody = ~size_t{0};

  const TileProgram& program_;
  const PairedProduct pair_, sparse_pair_;
  const bool is_plain_;  // Nothing but loops over the cells and rows of dense inputs.
  int64_t calls_ = 0;
  std::optional<BodyRows> body_;  // Of the call.
  mutable std::mutex failing_;
  mutable Status failure_;
  TileInputs inputs_;
  BodyScalars scalars_;
  std::vector<AlignedArray> repeated_;
  std::vector<NarrowRight> narrow_;                                 // By step.
  std::vector<NarrowRight> narrow_spread_;                          // Likewise, of MultiplySpread.
  std::vector<bool> finite_;                                        // Likewise: right operands of those.
  std::vector<std::unique_ptr<PackedRight>> packed_;                // Likewise.
  std::vector<std::unique_ptr<SinglePackedRight>> packed_singles_;  // Likewise.
  std::vector<int64_t> buffer_offsets_;
  int64_t scratch_doubles_ = 0;
  TileSizes sizes_;
  std::vector<double*> results_;     // By root of the operator; of reductions none.
  std::vector<double*> background_;  // Likewise.
  struct ColumnLeaves {
    double* cells = nullptr;
    int64_t first_row = 0;
  };
  std::vector<ColumnLeaves> column_leaves_;  // By root.
  std::vector<double*> saved_;
  int64_t first_saved_row_ = 0;
  // The first thread that asks has a place of its own; most small operators need no other one.
  std::atomic<size_t> owner_ = kNobody;
  std::unique_ptr<TileScratch> of_owner_;
  std::atomic<ThreadSlots<TileScratch>*> of_others_ = nullptr;
};

}  // namespace heddle::ops
