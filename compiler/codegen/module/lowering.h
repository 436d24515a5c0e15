// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/codegen/module/emit_cell.h"

namespace heddle::codegen {

/// How often a value of a region is computed.
enum class Rate : uint8_t { kOnce, kPerRow, kPerCell };

/// Writes the function of one region (LowerRegion). lower_region.cc has what happens once and for each row, lower_columns.cc
/// the loops along a row. Variables of loops are memory of the frame, which the first pass makes registers.
class Lowering {
 public:
  Lowering(const ops::Region& region, llvm::Function* function, int register_lanes)
      : region_(region), emitter_(function, register_lanes), b_(emitter_.builder), values_(region.nodes.size()) {}

  void Run();

 private:
  using Vector = ops::emitted::Vector;
  using Mask = ops::emitted::Mask;
  using Values = std::vector<std::optional<Vector>>;
  struct Accumulator { std::array<llvm::AllocaInst*, 2> parts = {}; };
  using Stores = std::vector<std::pair<llvm::Value*, Vector>>;  ///< Where, what.

  void FindRates();
  void ReadCall();
  void JoinRows();
  void BeginRow(llvm::Value* i);
  void FindStream();
  void EndRow(llvm::Value* i);
  void EmitColumns();
  void WholeLoop(int unroll);
  void WholeBody(int unroll);
  void RaggedBody(llvm::Value* count);
  void LargeBody(llvm::Value* count);
  void LargeLoop();
  std::vector<llvm::Value*> PaddedSources(llvm::Value* is_ragged, llvm::Value* count);
  void WriteWhole(const Stores& stores);
  void Prefetch(int unroll);
  void ComputeAt(Rate rate, Values& values);
  std::vector<llvm::Value*> Sources() const;
  Values ComputeCells(const std::vector<llvm::Value*>& sources, llvm::Value* j, const Mask* mask);
  Vector LoadCells(llvm::Value* cells, const Mask* mask) {
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
  llvm::Value* Get(llvm::AllocaInst* variable) { return b_.CreateLoad(variable->getAllocatedType(), variable); }
  llvm::Value* Integer(int64_t x) { return emitter_.Integer(x); }
  Accumulator NewAccumulator();
  Vector Get(const Accumulator& accumulator);
  void Set(const Accumulator& accumulator, Vector value);

  const ops::Region& region_;
  Emitter emitter_;
  llvm::IRBuilder<>& b_;
  std::vector<Rate> rates_;
  Values values_;  ///< Of nodes that are not per cell.
  std::vector<llvm::Value*> inputs_, input_strides_, outputs_, output_strides_;  // by position; nullptr where not needed
  std::vector<llvm::Value*> rows_of_inputs_, rows_of_outputs_;                   // start of the current row
  std::vector<Accumulator> accumulators_;                                        // by output; of kFoldFlat and kFoldRows
  llvm::AllocaInst *rows_ = nullptr, *columns_ = nullptr;
  llvm::Value *stream_ = nullptr, *prefetch_ = nullptr;
  llvm::Value* row_columns_ = nullptr;         ///< Columns, in a row.
  llvm::AllocaInst* j_ = nullptr;              ///< The current column.
  llvm::AllocaInst* row_stream_ = nullptr;     ///< 1 if this row's stores go past the caches.
  llvm::AllocaInst* count_ = nullptr;          ///< Cells of the next masked step; first those before the first line of the outputs.
};

}  // namespace heddle::codegen
