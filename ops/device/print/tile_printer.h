// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/aggregate/aggregate.h"
#include "ops/device/print/print_cell.h"
#include "ops/device/print/print_tiles.h"
#include "ops/device/print/printer.h"

namespace heddle::ops {

/// Prints one tile program (PrintTiles). tile_printer.cc has what a kernel begins with and the loops over
/// tasks, tiles and steps, tile_printer_steps.cc the steps.
class TilePrinter {
 public:
  TilePrinter(const TileProgram& program, const TileLimits& limits) : program_(program), limits_(limits) {}
  Result<PrintedTiles> Print();

 private:
  static constexpr int64_t kLanes = 8;
  static constexpr int64_t kMostTileRows = 64;

  /// Cells of a value as the kernel reads and writes them: cell (i, j) of a tile is `base[(i) * stride + j]`.
  struct Cells {
    std::string base;
    int64_t stride = 0;
    bool single = false;
    std::string At(std::string_view i, std::string_view j) const {
      if (stride == 1) return fmt::format("{}[{}]", base, i);
      return fmt::format("{}[({}) * {} + ({})]", base, i, stride, j);
    }
    std::string Load(std::string_view i, std::string_view j) const {
      return single ? fmt::format("(double){}", At(i, j)) : At(i, j);
    }
    /// Of cells that are floats, whatever type they are stored in.
    std::string LoadSingle(std::string_view i, std::string_view j) const {
      return single ? At(i, j) : fmt::format("convert_float_rte({})", At(i, j));
    }
  };

  Status Check() const;
  Status CheckStep(const Step& step) const;
  const ValueInfo& InfoOfInput(int input) const;
  bool IsSingleInput(int input) const;
  void FindArguments();
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
  bool HasOpenChains(const TileRoot& root) const;
  Cells PlaceOf(const TileRef& ref) const;
  static std::string TypeName(bool single);
  void PrintHead();
  void Line(int depth, std::string_view line);
  void Barrier();
  void PrintTasks();
  std::string PayloadOf(size_t r) const;
  // All loops take every work-item through equally many rounds, and stand in no condition that differs
  // between work-items: POCL up to 3.1 skips some of the others (findings/pocl_skips_a_loop.sh).

  // A loop in which `item` is each number below `count` for one work-item; the others skip the round. Ends
  // with kEndOfEach.
  std::string Each(std::string_view item, const std::string& count) const;
  static constexpr std::string_view kEndOfEach = "} }";
  // The same for bodies with loops, which ask themselves whether `item` is below `count`. Ends with one
  // brace.
  std::string EachTogether(std::string_view item, const std::string& count) const;
  // The loop of a lane over the columns `j` of a row, in PrintLanes; ends with two braces.
  void PrintLaneLoop(int64_t columns);
  // Work-items over places of a payload: the same ones for the same places everywhere.
  std::string EachPlace(int64_t count) const;
  void PrintStartOfLeaf(size_t r);
  void PrintStep(const Step& step);
  template <typename Statement>
  void PrintEachCell(int64_t columns, Statement statement) {
    Line(3, Each("c", fmt::format("n * {}", columns)));
    Line(4, fmt::format("const int i = c / {}, j = c - i * {};", columns, columns));
    Line(4, statement());
    Line(3, kEndOfEach);
  }
  void PrintCopy(int64_t columns, const Cells& from, const Cells& to);
  std::string LoadOperand(const Step& step, const RegionNode& node) const;
  // An input that is needed whole.
  Cells WholeOf(int input) const;
  void PrintRegion(const Step& step);
  Cells FoldedBuffer(const Step& step, size_t o) const;
  std::string FoldStatement(int depth, simd::Fold fold, std::string_view accumulator,
                            const std::string& x) const;
  // The lanes of `count` rows at once, from `chain`, which adds to acc; `finish` has L of one in `l`.
  template <typename Chain, typename Finish>
  void PrintLanes(const std::string& count, simd::Fold fold, Chain chain, Finish finish) {
    const int64_t at_once = limits_.group_size / kLanes;
    Line(3, fmt::format("for (int base = 0; base < {}; base += {}) {{", count, at_once));
    Line(4, "const int w = base + item / 8, lane = item % 8;");
    Line(4, fmt::format("double acc = {};", printed::StartOf(fold)));
    Line(4, fmt::format("const int is_mine = w < {};", count));
    chain();
    Line(5, "} }");
    Line(4, "lanes[item] = acc;");
    Line(4, "barrier(CLK_LOCAL_MEM_FENCE);");
    Line(4, "if (lane == 0 && is_mine) {");
    finish(PrintJoinedLanes(fold));
    Line(4, "}");
    Line(4, "barrier(CLK_LOCAL_MEM_FENCE);");
    Line(3, "}");
  }
  // L of the eight lanes to which the work-item belongs, by its name.
  std::string PrintJoinedLanes(simd::Fold fold);
  // The squared deviations of `count` runs of `size` cells from their means, eight lanes a run; cell `of` of
  // run w is `at(of)`. `finish` has the sum of one run in `squares` and its mean in `mean`.
  template <typename At, typename Finish>
  void PrintDeviations(const std::string& count, const std::string& size, At at, Finish finish) {
    const int64_t at_once = limits_.group_size / kLanes;
    Line(3, fmt::format("for (int base = 0; base < {}; base += {}) {{", count, at_once));
    Line(4, "const int w = base + item / 8, lane = item % 8;");
    Line(4, fmt::format("const int is_mine = w < {};", count));
    for (const bool is_second : {false, true}) {
      Line(4, fmt::format("double acc{} = 0.0;", is_second ? 2 : 1));
      Line(4, fmt::format("for (int eight = 0; eight < {}; eight += 8) {{ const int j = eight + lane;", size));
      Line(5, fmt::format("if (is_mine && j < {}) {{", size));
      if (is_second) Line(6, fmt::format("const double d = {} - mean; acc2 = acc2 + d * d;", at("j")));
      if (!is_second) Line(6, fmt::format("acc1 = acc1 + {};", at("j")));
      Line(5, "} }");
      if (is_second) Line(4, "barrier(CLK_LOCAL_MEM_FENCE);");
      Line(4, fmt::format("lanes[item] = acc{};", is_second ? 2 : 1));
      Line(4, "barrier(CLK_LOCAL_MEM_FENCE);");
      if (is_second) break;
      const std::string sum = PrintJoinedLanes(simd::Fold::kAdd);
      Line(4, fmt::format("const double mean = {} / (double){};", sum, size));
    }
    Line(4, "if (lane == 0 && is_mine) {");
    Line(5, fmt::format("const double squares = {};", PrintJoinedLanes(simd::Fold::kAdd)));
    finish();
    Line(4, "}");
    Line(4, "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);");
    Line(3, "}");
  }
  void PrintFoldRows(const Cells& from, int64_t columns, const Cells& to, simd::Fold fold, bool is_mean,
                     bool must_be_finite);
  void PrintPlaceOfExtreme(const Step& step);
  void PrintSpreadOfRows(const Step& step);
  // colVars, colSds of the leaf that the tile ends, if it ends one.
  void PrintMoments(size_t r);
  void PrintMultiply(const Step& step);
  void PrintMultiplySingles(const Step& step);
  void PrintRoot(const Step& step);
  // t(X) %*% Y in blocks of 64 rows.
  void PrintAddSingles(const Step& step);
  // Full aggregates, and those of columns: of few columns eight chains each.
  void PrintFoldIntoRoot(size_t r, const Cells& x, int64_t columns);

  const TileProgram& program_;
  const TileLimits limits_;
  PrintedTiles printed_;
  std::string text_;
  std::vector<int64_t> buffer_columns_;  // Of the program, and of outputs of regions that are folded.
  std::map<std::pair<const Step*, size_t>, int> folded_buffers_;
  std::map<size_t, int64_t> chain_places_;  // By root: where its open chains are in the scratch memory.
  int64_t tile_rows_ = 0;
  bool is_local_ = true;
};

}  // namespace heddle::ops
