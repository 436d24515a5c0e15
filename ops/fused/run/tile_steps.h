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

/// Rows [begin, end) of a compressed input that one thread has decoded.
struct DecodedRows {
  int64_t begin = 0, end = 0;
  AlignedArray cells;
  TileDecoder<double>::Cursor cursor;
};

/// What one thread needs to compute tiles, one after the other.
struct TileScratch {
  int64_t call = 0;  ///< The call of TileSteps whose addresses are in `arguments`.
  int64_t room = 0;  ///< Doubles of `buffers`.
  AlignedArray buffers, patterns;
  std::vector<DecodedRows> decoded;      ///< By input.
  int64_t entries = 0;                   ///< Doubles of each of `patterns`.
  std::map<int, SpreadRow> spread_rows;  ///< By input: a CSR row written out, where steps gather its cells.
  RowPattern pattern;       ///< Entries of the tile's rows: the driver's, or those that kIntersect found.
  int64_t pattern_row = 0;  ///< The first of these rows.
  std::vector<int64_t> offsets;  ///< The arrays of `pattern` after kIntersect.
  std::vector<int32_t> columns;
  std::vector<RegionArguments> arguments;  ///< By step.
  /// Rows of X of the tile before, doubles or floats, that a paired root (rows/paired_product.h) has not
  /// added.
  const double* waiting = nullptr;
  int64_t waiting_rows = 0;
  int64_t first_column = 0, width = 0;  ///< Columns of the tile, where long rows are cut by columns.
  size_t phase = 0;                     ///< Phase of the steps that run, of long rows.
  /// By result of one column: a cell to write in tiles that do not begin the row, since the first tile has
  /// written the result.
  std::vector<double> cells;
  int64_t held_begin = 0, held_end = 0;  ///< Rows whose values at the driver's entries are in `patterns`.
  std::vector<float> singles, right_singles;  ///< Rows of buffers as floats, for a product of floats.
  std::map<int, TransposedSingles> chains;    ///< By root: the chains of its leaf that have not ended.
  std::vector<double> leaf_sums;              ///< Eight lanes for each leaf of a tile.
  FilledRows filled;                          ///< Rows along entries, those with a background as full rows.
  std::vector<double> spread;                 ///< Dense rows for a product that cannot go along entries.
  /// Rows from `row` on, as far as the tile goes.
  RowPattern PatternAt(int64_t row) const;
  Entries EntriesAt(const double* values, int64_t row) const;
};

/// The steps of a tile program, bound to the operands of one call at a time: Prepare, then tiles on any
/// threads, then Release.
class TileSteps {
 public:
  /// `program` outlives it.
  explicit TileSteps(const TileProgram& program);
  ~TileSteps();
  /// Before a call.
  Status Prepare(const KernelCall& call);
  /// After a call: lets go of its operands. False if the buffers that remain are too large to wait for
  /// another call.
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

  /// Corrects results of the row aggregate `fold`, rows [row, row_end), that are infinite or NaN only because
  /// a sum on the way left the range of doubles. out[0] is the result of `row`.
  void CorrectFold(NodeId fold, int64_t row, int64_t row_end, double* out) const;
  /// The first failure in a tile; to be asked after the last tile.
  Status failure() const;

  std::unique_ptr<TileScratch> Take();
  void GiveBack(std::unique_ptr<TileScratch> scratch);

  /// End of the tile that begins at `row`, at most `last`.
  int64_t TileEnd(int64_t row, int64_t last) const;
  /// Runs all steps on rows [row, row_end) and adds to `payload` what they contribute to the roots, unless it
  /// is null. `row_in_panel`: the first row's place in its leaf (for each root modulo the rows of its leaf).
  void RunTile(TileScratch& scratch, int64_t row, int64_t row_end, int64_t row_in_panel,
               double* payload) const;
  /// The array of saved value `i` (TileRef::Kind::kSaved), whose first row is row `first_row` of the call.
  void SaveIn(int i, double* cells, int64_t first_row) {
    saved_[static_cast<size_t>(i)] = cells;
    first_saved_row_ = first_row;
  }
  /// Where the column sums of root `r` go, of rows longer than a column chunk: arrays for its leaves, one
  /// after the other, from the leaf of row `first_row` on, the first row of this rank.
  void SumColumnsIn(size_t r, double* leaves, int64_t first_row) { column_leaves_[r] = {leaves, first_row}; }
  /// The phase whose steps RunColumns runs from now on, and by root the aggregates of its row that earlier
  /// phases have completed.
  void SetPhase(TileScratch& scratch, int phase, const double* folds) const;
  /// Runs the steps on at most so many columns of one row (TileProgram::cut_columns). `payload` is that of
  /// the leaf; or of these columns alone, if they are at most kTileColumns.
  void RunColumns(TileScratch& scratch, int64_t row, int64_t first_column, int64_t most_columns,
                  double* payload) const;
  /// Adds to the payload of root `root` what is missing after the last tile of a leaf: rows that wait for the
  /// other half of their pair, and chains of floats that have not ended.
  void EndLeaf(TileScratch& scratch, int root, double* payload) const;
  /// Moves the cells of root `r`, whose payload begins at `offset`, to where its "finish" looks for them:
  /// sums of CSR times several columns have them in another order while leaves are computed
  /// (AddSparseProduct).
  void SeparateRoot(int r, int64_t offset, Matrix* nodes) const;
  /// Adds the terms of a root of few places (RootOfFewPlaces), after RunTile without a payload.
  void AddTermsOf(TileScratch& scratch, const Step& root, int64_t row, int64_t rows, SparseLeaf& terms) const;
  /// Adds rows [first, last), which are among those held (TileScratch::held_begin), to all roots.
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
  // True for rows that are not read from memory, and so not to be fetched.
  bool IsDecoded(const TileRef& ref) const {
    return ref.kind == TileRef::Kind::kInput && inputs_.decoders[static_cast<size_t>(ref.index)] != nullptr;
  }
  // Rows [row, row_end) of every input that is decoded, and some behind them.
  void DecodeRows(TileScratch& scratch, int64_t row, int64_t row_end) const;
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
  const PairedProduct pair_of_program_, sparse_pair_;
  PairedProduct pair_;   // Of this call.
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
