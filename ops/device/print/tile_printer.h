// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>

#include <functional>
#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/values/panels.h"
#include "ops/aggregate/aggregate.h"
#include "ops/device/print/print_cell.h"
#include "ops/device/print/print_tiles.h"
#include "ops/device/print/printer.h"
#include "ops/device/print/tile_cells.h"

namespace heddle::ops {

/// Prints one tile program (PrintTiles). tile_printer.cc has what a kernel begins with and the loops over
/// tasks, tiles and steps, tile_printer_steps.cc the steps, tile_printer_folds.cc aggregates of rows,
/// tile_printer_roots.cc what tiles add to reductions, tile_printer_long_rows.cc all that is different where
/// rows are cut by columns, tile_printer_direct.cc programs without tiles.
///
/// Loops have two forms. Work-items of a group share the cells of a step; or the group has one work-item
/// (TileLimits::group_size 1), whose plain loops the compiler of the device vectorizes.
class TilePrinter {
 public:
  /// `of_cells`: rows are single cells.
  TilePrinter(const TileProgram& program, const TileLimits& limits, bool of_cells)
      : program_(program), limits_(limits), of_cells_(of_cells), is_alone_(limits.group_size == 1) {}
  Result<PrintedTiles> Print();

 private:
  static constexpr int64_t kLanes = 8;
  static constexpr int64_t kMostTileRows = 64;
  // Rows of so few columns are packed: each belongs to one work-item, where of eight most would have nothing
  // to do.
  static constexpr int64_t kShortRow = 16;
  // Of one work-item, whose loops should be long.
  static constexpr int64_t kMostRowsAlone = 1024;
  static constexpr int64_t kMostCellsAlone = 8192;
  // Of rows that are single cells: eight for each work-item.
  static constexpr int64_t kMostCells = 1024;
  // Rows that a work-item which is alone adds to places of a payload at once, so that it loads and stores
  // them less often.
  static constexpr int64_t kRowsAtOnce = 8;
  // Rows whose lanes it adds up at once.
  static constexpr int64_t kRunsAtOnce = 4;
  // Columns of which a work-item that is alone has chains of floats at once.
  static constexpr int64_t kStripColumns = 64;

  using CellIndex = printed::CellIndex;
  using Cells = printed::Cells;

  // Rows are longer than a column chunk, and tiles have some columns of them.
  bool IsCut() const { return program_.cut_columns > 0; }
  Status Check() const;
  Status CheckStep(const Step& step) const;
  Status CheckEntries() const;
  Status CheckLongLeaves() const;
  const ValueInfo& InfoOfInput(int input) const;
  bool IsSingleInput(int input) const;
  void FindArguments();
  void FindScalarsInMemory();
  bool IsInMemory(NodeId scalar) const {
    return std::binary_search(printed_.scalars_in_memory.begin(), printed_.scalars_in_memory.end(), scalar);
  }
  // Rows of a tile and of a task: all leaves begin at the first row of a tile, and a tile that does not end
  // one has a multiple of eight rows.
  void ChooseRows();
  // Whether output `o` of a region is the fold of each row, or goes into a root.
  bool FoldsOutput(const Step& step, size_t o) const;
  // rowIndexMax, rowIndexMin.
  static bool FindsPlaces(const Step& step) {
    return step.kind == Step::Kind::kFoldRows &&
           (step.aggregate == AggregateKind::kIndexMax || step.aggregate == AggregateKind::kIndexMin);
  }
  // Chains of floats that go on from tile to tile.
  bool HasOpenChains(size_t r) const;
  // Whether what root `r` adds up is at entries: of a CSR input, or of the driver.
  bool AddsEntries(size_t r) const;
  Cells PlaceOf(const TileRef& ref) const;
  static std::string TypeName(bool single);
  std::vector<std::string> Parameters() const;
  void PrintHead();
  void Line(int depth, std::string_view line);
  void Barrier();
  // The tasks of a work-group, of those of a launch.
  void PrintLoopOverTasks();
  void PrintTasks();
  // A place of the payload of the leaf that the tile belongs to.
  static std::string PayloadOf(size_t r, std::string_view place = "p") {
    return fmt::format("sum{}[{}]", r, place);
  }

  // All loops take every work-item through equally many rounds, and stand in no condition that differs
  // between work-items: POCL up to 3.1 skips some of the others (findings/pocl_skips_a_loop.sh).

  // The head of a loop whose rounds write to different places and read nothing that another one writes, for a
  // work-item that is alone. Compilers for processors with vectors of 512 bits take those of 256 unless they
  // are told. No round may add to what another one adds to: the hint allows another order of additions.
  static std::string InVectors(std::string_view loop) {
    return fmt::format("_Pragma(\"clang loop vectorize_width({})\") {}", kLanes, loop);
  }
  // A loop in which `item` is each number below `count` for one work-item; the others skip the round. Ends
  // with kEndOfEach.
  std::string Each(std::string_view item, const std::string& count) const;
  static constexpr std::string_view kEndOfEach = "} }";
  // The same for bodies with loops, which ask themselves whether `item` is below `count`. Ends with one
  // brace.
  std::string EachTogether(std::string_view item, const std::string& count) const;
  // `condition`, where a work-item may have no part in the round.
  std::string IfMine(std::string_view condition) const {
    return is_alone_ ? "" : fmt::format("if ({}) ", condition);
  }
  // Work-items over places of a payload: the same ones for the same places everywhere.
  std::string EachPlace(int64_t count) const;
  void PrintStartOfLeaf(size_t r);
  void PrintStep(const Step& step);
  // Each cell of a tile of so many columns. `body` prints its statements, of cells at a CellIndex.
  template <typename Body>
  void PrintCells(int64_t columns, Body body) {
    const bool is_cut = IsCut() && columns > 1;
    if (is_cut) columns = tile_columns_;
    CellIndex index{.columns = columns};
    const std::string before = std::exchange(text_, {});
    body(index);
    const std::string statements = std::exchange(text_, before);
    if (is_cut) return PrintCutCells(statements);
    const bool by_place = columns == 1 || (!index.needs_row && !index.needs_column);
    if (is_alone_) {
      const std::string loop = by_place ? fmt::format("for (int c = 0; c < n * {}; ++c) {{", columns)
                                        : fmt::format("for (int j = 0; j < {}; ++j) {{", columns);
      Line(3, by_place ? "{" : "for (int i = 0; i < n; ++i) {");
      Line(3, CallsPrelude(statements) ? loop : InVectors(loop));
      if (by_place && columns == 1) Line(4, "const int i = c, j = 0;");
      if (!by_place) Line(4, fmt::format("const int c = i * {} + j;", columns));
    } else {
      Line(3, Each("c", fmt::format("n * {}", columns)));
      if (index.needs_row || index.needs_column) Line(4, fmt::format("const int i = c / {};", columns));
      if (index.needs_column) Line(4, fmt::format("const int j = c - i * {};", columns));
    }
    text_ += statements;
    Line(3, kEndOfEach);
  }
  // Functions of the prelude have branches that few cells take, and vectors would take for all.
  static bool CallsPrelude(std::string_view statements) {
    return statements.find("heddle_") != std::string_view::npos;
  }
  void PrintCutCells(std::string_view statements);
  void PrintCopy(int64_t columns, const Cells& from, const Cells& to);
  std::string LoadOperand(const Step& step, const RegionNode& node, CellIndex& index) const;
  // The nodes of a region at a cell, by name.
  std::vector<std::string> PrintNodes(const Step& step, CellIndex& cell, printed::Printer& printer) const;
  // An input that is needed whole.
  Cells WholeOf(int input) const;
  void PrintRegion(const Step& step);
  Cells FoldedBuffer(const Step& step, size_t o) const;
  // `eights`: of vectors.
  std::string FoldStatement(int depth, simd::Fold fold, std::string_view accumulator, const std::string& x,
                            bool eights = false) const;

  // Eight lanes of each of `count` runs of `size` cells: cell `j` of run `w` goes to the lane j mod 8. Lanes
  // of a run belong to eight work-items, or are a vector of one that is alone. `add(acc, load)` prints how
  // cells are added, `finish` has L of a run, by its name.
  template <typename Add, typename Finish>
  void PrintLanes(const std::string& count, int64_t size, simd::Fold fold, Add add, Finish finish) {
    if (IsShort(size)) {
      Line(3, Each("w", count));
      PrintShortLanes("acc", size, printed::StartOf(fold), add);
      finish(JoinedLanes(fold, ShortLanes("acc")));
      return Line(3, kEndOfEach);
    }
    if (is_alone_) return PrintLanesAlone(count, size, fold, add, finish);
    BeginRuns(count);
    PrintAccumulator("acc", printed::StartOf(fold));
    PrintLaneLoop(std::to_string(size), size, [&](const Loader& load) { add("acc", load); });
    ShareLanes("acc");
    Line(4, "if (lane == 0 && is_mine) {");
    finish(PrintJoinedLanes(fold, "acc"));
    Line(4, "}");
    EndRuns();
  }
  // Of several runs at once: each has a chain of vectors, which alone would wait for each addition. They are
  // a quarter of all runs apart, so in different pages, of each of which a processor fetches what comes next.
  template <typename Add, typename Finish>
  void PrintLanesAlone(const std::string& count, int64_t size, simd::Fold fold, Add add, Finish finish) {
    Line(3, fmt::format("{{ const int apart = ({}) / {};", count, kRunsAtOnce));
    for (const int64_t at_once : {kRunsAtOnce, int64_t{1}}) {
      if (at_once > 1)
        Line(3, "for (int first_run = 0; first_run < apart; ++first_run) {");
      else
        Line(3, fmt::format("for (int first_run = {} * apart; first_run < {}; ++first_run) {{", kRunsAtOnce,
                            count));
      const auto each = [&](const std::function<void(const std::string&)>& print) {
        for (int64_t run = 0; run < at_once; ++run) {
          Line(5, fmt::format("{{ const int w = first_run + {} * apart;", run));
          print(fmt::format("acc{}", run));
          Line(5, "}");
        }
      };
      for (int64_t run = 0; run < at_once; ++run)
        PrintAccumulator(fmt::format("acc{}", run), printed::StartOf(fold));
      PrintLaneLoop(std::to_string(size), size, [&](const Loader& load) {
        each([&](const std::string& acc) { add(acc, load); });
      });
      each([&](const std::string& acc) { finish(PrintJoinedLanes(fold, acc)); });
      Line(3, "}");
    }
    Line(3, "}");
  }
  bool IsShort(int64_t size) const { return !is_alone_ && size <= kShortRow; }
  // The eight lanes of a short run as values of one work-item, `name`0 and so on.
  template <typename Add>
  void PrintShortLanes(const std::string& name, int64_t size, const std::string& start, Add add) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const std::string acc = fmt::format("{}{}", name, lane);
      Line(4, fmt::format("double {} = {};", acc, start));
      for (int64_t j = lane; j < size; j += kLanes) {
        Line(5, "{");
        add(acc, Loader::OfCell(j));
        Line(5, "}");
      }
    }
  }
  static std::vector<std::string> ShortLanes(std::string_view name) {
    std::vector<std::string> lanes;
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes.push_back(fmt::format("{}{}", name, lane));
    return lanes;
  }
  // The cells that a lane, or a vector of all eight, takes in one round. In lanes beyond the last cell of a
  // run there is `absent`, a number that changes nothing.
  class Loader {
   public:
    static Loader OfLane() { return Loader(false, "j", kLanes); }
    static Loader OfCell(int64_t column) { return Loader(false, std::to_string(column), 1); }
    static Loader OfEight(std::string column, int64_t cells) {
      return Loader(true, std::move(column), cells);
    }
    /// Cells (i, j).
    std::string Row(const Cells& cells, std::string_view i, const std::string& absent) const;
    /// Cells (j, c).
    std::string Column(const Cells& cells, std::string_view c, const std::string& absent) const;

   private:
    Loader(bool eight, std::string column, int64_t cells)
        : eight_(eight), column_(std::move(column)), cells_(cells) {}
    template <typename Load>
    std::string Gather(const std::string& absent, Load load) const;
    const bool eight_;
    const std::string column_;  // Of the first.
    const int64_t cells_;
  };
  // The squared deviations of `count` runs of `size` cells from their means; `cell(load, absent)` are cells
  // of run w. `finish` has the sum of one run in `squares` and its mean in `mean`.
  template <typename Cell, typename Finish>
  void PrintDeviations(const std::string& count, const std::string& size, Cell cell, Finish finish) {
    const int64_t cells = is_alone_ ? std::stoll(size) : 0;
    BeginRuns(count);
    PrintAccumulator("acc", "0.0");
    PrintLaneLoop(size, cells,
                  [&](const Loader& load) { Line(6, "acc = acc + " + cell(load, "0.0") + ";"); });
    ShareLanes("acc");
    Line(4, fmt::format("const double mean = {} / (double){};", PrintJoinedLanes(simd::Fold::kAdd, "acc"),
                        size));
    PrintAccumulator("squared", "0.0");
    PrintLaneLoop(size, cells, [&](const Loader& load) {
      Line(6, fmt::format("const {} d = {} - mean; squared = squared + d * d;",
                          is_alone_ ? "double8" : "double", cell(load, "mean")));
    });
    if (!is_alone_) Line(4, "barrier(CLK_LOCAL_MEM_FENCE);");
    ShareLanes("squared");
    Line(4, is_alone_ ? "{" : "if (lane == 0 && is_mine) {");
    Line(5, fmt::format("const double squares = {};", PrintJoinedLanes(simd::Fold::kAdd, "squared")));
    finish();
    Line(4, "}");
    EndRuns();
  }
  void BeginRuns(const std::string& count);
  void EndRuns();
  void PrintAccumulator(const std::string& name, const std::string& start);
  template <typename Body>
  void PrintLaneLoop(const std::string& size, int64_t cells, Body body) {
    if (!is_alone_) {
      Line(4,
           fmt::format("for (int eight = 0; eight < {}; eight += 8) {{ const int j = eight + lane;", size));
      Line(5, fmt::format("if (is_mine && j < {}) {{", size));
      body(Loader::OfLane());
      return Line(5, "} }");
    }
    const int64_t whole = cells / kLanes * kLanes;
    if (whole > 0) {
      Line(4, fmt::format("for (int j = 0; j < {}; j += 8) {{", whole));
      body(Loader::OfEight("j", kLanes));
      Line(4, "}");
    }
    if (whole == cells) return;
    Line(4, "{");
    body(Loader::OfEight(std::to_string(whole), cells - whole));
    Line(4, "}");
  }
  void ShareLanes(const std::string& name);
  // L of eight values.
  std::string JoinedLanes(simd::Fold fold, const std::vector<std::string>& lanes);
  // L of the eight lanes to which the work-item belongs, by its name.
  std::string PrintJoinedLanes(simd::Fold fold, const std::string& name);
  void PrintFoldRowsStep(const Step& step);
  void PrintFoldRows(const Cells& from, int64_t columns, const Cells& to, simd::Fold fold, bool is_mean,
                     bool must_be_finite);
  void PrintPlaceOfExtreme(const Step& step, const Cells& from);
  void PrintSpreadOfRows(const Step& step, const Cells& from);

  // Of CSR inputs (tile_printer_entries.cc).
  // Whether a row aggregate of a CSR input takes its cells from rows written out.
  static bool FoldsDensified(const Step& step) {
    return step.kind == Step::Kind::kFoldRows && step.index >= 0 &&
           (FindsPlaces(step) || IsSpread(step.aggregate) || step.aggregate == AggregateKind::kProduct);
  }
  // Value and column of entry `e`.
  std::string ValueAt(int input) const {
    return fmt::format("{}values{}[e]", IsSingleInput(input) ? "(double)" : "", input);
  }
  // The loop over the entries `e` of row `row` of a tile for one of several work-items, which have different
  // rows: as many rounds as the longest of rows [first, last) has entries. `is_mine` holds where the
  // work-item has an entry in the round. For one that is alone, the loop over the entries of the row. Ends
  // with one brace.
  void BeginEntries(int input, std::string_view row, const std::string& first, const std::string& last);
  struct EntrySource {
    int input;          // Whose columns and offsets they have.
    std::string value;  // Of entry `e`.
  };
  // Those of a CSR input, or the values at the driver's entries that the step reads.
  EntrySource EntriesOf(const Step& step, int input) const;
  // Whether there is one value at each entry of the driver.
  bool IsAtEntries(const TileRef& ref) const {
    return IsByEntry(ref) || (ref.kind == TileRef::Kind::kResult && program_.IsPatterned(ref.index));
  }
  // The value at entry `e`; a statement that sets it.
  std::string EntryOf(const TileRef& ref) const;
  std::string SetEntry(const TileRef& ref, const std::string& value) const;
  // Both end with three braces.
  void BeginEachEntry();
  void BeginEntriesByRow();
  // Cells (w, c) of k columns for one of several work-items, and the rows [first, last) that a round has.
  void BeginCellsByEntries(int64_t k);
  // The cell of a CSR input in row `i` of the tile and the column of the driver's entry `e`, by its name.
  std::string PrintFind(int input);
  void PrintIntersect(const Step& step);
  void PrintRegionOfEntries(const Step& step);
  void PrintStepOfEntries(const Step& step);
  void PrintSumEntries(const Step& step, const std::string& value);
  void PrintDensify(int input, const Cells& to);
  void PrintFoldEntries(const Step& step);
  void PrintMultiplyEntries(const Step& step);
  void PrintMultiplySingleEntries(const Step& step);
  void PrintAddEntries(const Step& step);
  void PrintAddSingleEntries(const Step& step);

  // Of rows that have values at the driver's entries and one number in all other cells (row_background.h):
  // tile_printer_backgrounds.cc.
  // Whether the step needs all cells of rows that are at entries: because those beside the entries are not
  // always 0, or because zeros count.
  bool SpreadsRows(const Step& step) const;
  // Whether it does so in every tile: else only where some row of a tile has a background that is not 0, or
  // where zeros count.
  bool AlwaysSpreadsRows(const Step& step) const;
  void PrintSpread(const TileRef& from, const TileRef& background, const Cells& to);
  // The step over rows that have been written out, and over the entries of tiles that need none of that.
  void PrintSpreadStep(const Step& step);
  void PrintMultiplySpread(const Step& step, const Cells& from);
  void PrintAddSpread(const Step& step, const Cells& from);
  // That a CSR result has cells beside the driver's entries.
  void PrintBackgroundOfResult(const Step& step);

  // Adds `count` terms to sums, in their order. `loops` goes over the sums, `place` is where one of them is,
  // and `chain(term)` prints the statements that add term number `term` to `acc`. For a work-item that is
  // alone: it takes several terms of each sum at once.
  template <typename Chain>
  void PrintChainsAlone(const std::string& loops, const std::string& count, const std::string& place,
                        Chain chain) {
    Line(3, "{ int t = 0;");
    for (const int64_t at_once : {kRowsAtOnce, int64_t{1}}) {
      Line(3, fmt::format("for (; t + {0} <= {1}; t += {0})", at_once, count));
      Line(4, loops + " {");
      Line(4, fmt::format("double acc = {};", place));
      for (int64_t term = 0; term < at_once; ++term) {
        Line(4, "{");
        chain(at_once == 1 ? std::string("t") : fmt::format("t + {}", term));
        Line(4, "}");
      }
      Line(4, fmt::format("{} = acc;", place));
      Line(4, "}");
    }
    Line(3, "}");
  }
  // Variances of the leaf that the tile ends, if it ends one.
  void PrintMoments(size_t r);
  void PrintMomentsInLanes(size_t r, const Cells& x);
  void PrintMomentsInChains(size_t r, const Cells& x);
  void PrintMomentsOfCells(size_t r);
  // `mean` and `squares` of a run of `cells` cells, for a work-item that is alone.
  void PrintMomentsAlone(const Cells& x, const std::function<void(int)>& store);
  void PrintMultiply(const Step& step);
  void PrintMultiplySingles(const Step& step);
  void PrintRoot(const Step& step);
  void PrintRootAlone(size_t r, const Cells& x, const Cells& y);
  // t(X) %*% Y in blocks of 64 rows.
  void PrintAddSingles(const Step& step);
  // Full aggregates, and those of columns: of few columns eight chains each.
  void PrintFoldIntoRoot(size_t r, const Cells& x, int64_t columns);
  void PrintFoldIntoRootAlone(size_t r, const Cells& x, int64_t columns);

  // Of entries of long rows (tile_printer_long_entries.cc).
  // Leaves of a row of a full aggregate.
  static int64_t ChunksOfRow(const TileRoot& root);
  // Where a cell of the column is among the lanes of the chunks of a row.
  static std::string PlaceInChunks(const std::string& column);
  void BeginChunks(int64_t columns);
  void NextChunk(int input, int64_t columns);
  void EndChunks(int64_t columns);
  // Of a full aggregate of many leaves: a work-group joins those of several rows (JoinedRows).
  void BeginJoinedLeaves(size_t r);
  void PrintJoinedLeaves(size_t r);

  // Of programs without tiles (tile_printer_direct.cc).
  bool IsDirect();
  void PrintDirectCell();
  void PrintDirect();

  // Of rows that are cut by columns (tile_printer_long_rows.cc).
  void ChooseColumns();
  void PrintLongRows();
  bool RunsIn(size_t step, int phase) const;
  void PrintPhase(int phase);
  void PrintPlacesOfSums(int phase);
  void PrintVectorResults(int phase);
  void PrintClosingPass();
  void BeginTasks(const PrintedPass& pass);
  void PrintStartOfRows(size_t r);
  void PrintJoinedChunks(size_t r, const std::string& to);
  void PrintJoinedMoments(size_t r, const std::string& to);
  void AddPass(PrintedPass pass);
  void PrintMomentsOfChunks(size_t r);
  Cells PlaceInCutRows(const TileRef& ref) const;
  void PrintDensifyColumns(int input, const Cells& to);
  void PrintFoldIntoChunk(size_t r, const Cells& x);

  const TileProgram& program_;
  const TileLimits limits_;
  const bool of_cells_;
  const bool is_alone_;
  PrintedTiles printed_;
  std::string text_;
  std::vector<int64_t> buffer_columns_;  // Of the program, and of outputs of regions that are folded.
  std::map<std::pair<const Step*, size_t>, int> folded_buffers_;
  std::map<size_t, int64_t> chain_places_;  // By root: where its open chains are in the scratch memory.
  std::map<size_t, int64_t> leaf_places_;  // By root: where the leaves of a row are that is joined to others.
  int joined_lanes_ = 0;  // How many times lanes were joined: names of values are not used again.
  int64_t tile_rows_ = 0;
  int64_t tile_columns_ = 0;  // At most, of rows that are cut by columns.
  std::map<int, TileRef> expanded_;    // By buffer: the column that its rows would repeat.
  std::map<int, int> vector_buffers_;  // By result of one column of such rows.
  bool is_local_ = true;
};

}  // namespace heddle::ops
