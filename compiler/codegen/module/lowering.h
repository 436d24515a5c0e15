// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/codegen/module/emit_cell.h"

namespace heddle::codegen {

/// How often a value of a region is computed.
enum class Rate : uint8_t { kOnce, kPerRow, kPerCell };

/// Writes the function of one region (LowerRegion). lower_region.cc has what happens once and for each row,
/// lower_columns.cc the loops along a row, lower_division.cc divisions by one number, lower_narrow.cc regions
/// of a known number of columns. Variables of loops are memory of the frame, which the first pass makes
/// registers.
class Lowering {
 public:
  Lowering(const ops::Region& region, llvm::Function* function, int register_lanes)
      : region_(region),
        emitter_(function, register_lanes),
        b_(emitter_.builder),
        values_(region.nodes.size()) {}

  void Run();

 private:
  using Vector = ops::emitted::Vector;
  using Mask = ops::emitted::Mask;
  using Values = std::vector<std::optional<Vector>>;
  /// Columns of a short row that are one register, `lanes` of its four.
  struct Piece {
    int64_t first = 0;
    int lanes = 4;
  };
  struct Accumulator {
    std::array<llvm::AllocaInst*, 2> parts = {};
  };
  /// What lower_division.cc needs of a number by which many cells are divided.
  struct Divisor {
    Vector reciprocal;
    Vector least;  ///< Cells of that size and more may be divided by multiplication.
  };
  using Cells = ops::emitted::Cells;
  using Stores = std::vector<std::pair<Cells, Vector>>;  ///< Where, what.

  void FindRates();
  void ReadCall();
  void JoinRows();
  void BeginRow(llvm::Value* i);
  void FindStream();
  void FindAhead();
  void FetchAhead(llvm::Value* cell, int64_t eights);
  void EndRow(llvm::Value* i);
  llvm::Value* JoinLanes(const ops::RegionOutput& output, Vector low, Vector high, int width);
  void EmitColumns();
  void EmitNarrowRows();
  void NarrowLoop(int rows, const std::function<void()>& body);
  void NarrowBody(int rows);
  std::vector<Vector> NarrowRow(llvm::Value* row, int row_in_body);
  Values ComputePiece(llvm::Value* first_cell, int64_t row_offset, Piece piece);
  std::vector<Piece> Pieces() const;
  Vector JoinFourRows(const ops::RegionOutput& output, std::array<Vector, 4> rows);
  void WholeLoop(int unroll);
  void PeriodLoop();
  void NextPlace();
  void WholeBody(int unroll);
  void RaggedBody(llvm::Value* count);
  void LargeBody(llvm::Value* count);
  void LargeLoop();
  bool IsOfFloats() const;
  int EightsAtOnce() const { return IsOfFloats() ? 2 : 1; }
  Values ComputeEights(const std::vector<Cells>& sources, llvm::Value* j, int eights);
  void WithEights(int eights, const std::function<void()>& body);
  Vector EightOf(const Vector& value, int eight);
  int EightsTogether() const;
  void InterleavedBody(int eights);
  std::vector<Cells> PaddedSources(llvm::Value* is_ragged, llvm::Value* count);
  void WriteWhole(const Stores& stores);
  void ComputeAt(Rate rate, Values& values);
  /// True for a division of many cells by one number, of the row or of all.
  bool DividesByOneNumber(size_t node) const;
  /// Those divisors of a rate, whose values are there.
  void FindDivisors(Rate rate);
  Vector DivideCells(Vector a, Vector b, const Divisor& divisor);
  std::vector<Cells> Sources() const;
  Values ComputeCells(const std::vector<Cells>& sources, llvm::Value* j, const Mask* mask);
  Values Complete(Values values);
  Vector LoadCells(Cells cells, const Mask* mask) {
    return mask == nullptr ? ops::emitted::Load(cells) : ops::emitted::LoadWhere(*mask, cells);
  }
  void FoldInto(size_t output, Vector value, llvm::Value* j, const Mask* mask);
  int UnrollFactor() const;
  bool Any(ops::Sink sink) const;
  bool IsCells(size_t node) const;
  bool UsesCells(const ops::RegionNode& node) const {
    return node.op == ops::RegionOp::kInput && node.access == ops::Access::kCells;
  }

  // if (condition) then();
  void If(llvm::Value* condition, const std::function<void()>& then);
  void For(llvm::Value* count, const std::function<void(llvm::Value*)>& body);
  llvm::Value* Field(size_t offset, llvm::Type* type);
  llvm::Value* Element(llvm::Value* array, int k, llvm::Type* type);
  llvm::AllocaInst* Variable(llvm::Value* start, const char* name);
  llvm::Value* Get(llvm::AllocaInst* variable) {
    return b_.CreateLoad(variable->getAllocatedType(), variable);
  }
  llvm::Value* Integer(int64_t x) { return emitter_.Integer(x); }
  Accumulator NewAccumulator();
  Vector Get(const Accumulator& accumulator);
  void Set(const Accumulator& accumulator, Vector value);

  const ops::Region& region_;
  Emitter emitter_;
  llvm::IRBuilder<>& b_;
  std::vector<Rate> rates_;
  Values values_;                                             ///< Of nodes that are not per cell.
  std::map<int, Divisor> divisors_;                           ///< By node.
  std::vector<Cells> inputs_, outputs_;                       // by position; null where not needed
  std::vector<llvm::Value*> input_strides_, output_strides_;  // the same
  std::vector<Cells> rows_of_inputs_, rows_of_outputs_;       // start of the current row
  std::vector<Accumulator> accumulators_;                     // by output; of kFoldFlat and kFoldRows
  /// By output; of narrow kFoldColumns by piece, of kFoldFlat of several eights by eight.
  std::vector<std::vector<Accumulator>> sums_;
  llvm::AllocaInst *rows_ = nullptr, *columns_ = nullptr;
  llvm::Value* stream_ = nullptr;
  llvm::Value* row_columns_ = nullptr;  ///< Columns, in a row.
  std::vector<Cells> ahead_;  ///< Inputs that are fetched: the start of the block that the call begins in.
  bool prefetches_in_order_ = false;
  llvm::Value* ahead_first_ = nullptr;  ///< Place of the call's first cell in that block.
  llvm::Value* ahead_row_ = nullptr;    ///< That of the current row's first cell.
  int eights_ = 1;                      ///< Of kFoldFlat outputs.
  int eight_ = -1;  ///< Where eights_ > 1: the eight that is folded in registers; -1: in memory, at place_.
  llvm::AllocaInst* place_ = nullptr;       ///< j_ modulo 8 eights_.
  llvm::AllocaInst* j_ = nullptr;           ///< The current column.
  llvm::AllocaInst* row_stream_ = nullptr;  ///< 1 if this row's stores go past the caches.
  llvm::AllocaInst* count_ =
      nullptr;  ///< Cells of the next masked step; first those before the first line of the outputs.
};

}  // namespace heddle::codegen
