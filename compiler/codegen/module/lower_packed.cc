// SPDX-License-Identifier: Apache-2.0
// Narrow regions that only store. Eight rows of n columns are n whole eights: no lane is lost to the ends of
// rows, and stores go past the caches by whole lines. What belongs to a row or a column is spread over these
// eights in registers.
#include "compiler/codegen/module/lowering.h"

namespace heddle::codegen {

using namespace ops::emitted;
using ops::Access;
using ops::RegionNode;
using ops::RegionOp;

// Eight rows at a time from row 0 on, as long as there are eight.
void Lowering::EmitPackedRows() {
  ComputeAt(Rate::kOnce, values_);
  RepeatColumns();
  llvm::Value* streams = stream_;
  for (const Cells& output : outputs_) {
    llvm::Value* const address = b_.CreatePtrToInt(output.at, b_.getInt64Ty());
    streams = b_.CreateAnd(streams, b_.CreateICmpEQ(b_.CreateAnd(address, Integer(63)), Integer(0)));
  }
  b_.CreateStore(streams, row_stream_);
  NarrowLoop(static_cast<int>(kLanes), [&] { PackedBody(); });
}

// Row vectors eight times, one after the other, on the stack.
void Lowering::RepeatColumns() {
  columns_repeated_.assign(inputs_.size(), {});
  for (const RegionNode& node : region_.nodes) {
    if (node.op != RegionOp::kInput || node.access != Access::kPerColumn) continue;
    const auto k = static_cast<size_t>(node.input);
    if (columns_repeated_[k].at != nullptr) continue;
    llvm::AllocaInst* const copies = emitter_.Reserve(
        llvm::ArrayType::get(b_.getDoubleTy(), static_cast<uint64_t>(kLanes * region_.columns)), "repeated");
    copies->setAlignment(llvm::Align(64));
    columns_repeated_[k] = copies;
    For(Integer(kLanes), [&](llvm::Value* copy) {
      const Cells to = PointerTo(copies, b_.CreateNSWMul(copy, row_columns_));
      For(row_columns_, [&](llvm::Value* j) {
        llvm::Value* const cell =
            b_.CreateAlignedLoad(b_.getDoubleTy(), PointerTo(inputs_[k], j).at, llvm::Align(8));
        b_.CreateAlignedStore(cell, PointerTo(to, j).at, llvm::Align(8));
      });
    });
  }
}

// The value of each cell's row, for the cells 8 eight ... 8 eight + 7 of eight rows; `rows` has one lane a
// row.
Vector Lowering::SpreadRows(Vector rows, int eight) {
  const int lanes = emitter_.register_lanes();
  return {EachPart([&](size_t part) -> llvm::Value* {
    // Four rows are whole registers of four too: one register of rows is enough.
    llvm::SmallVector<int, 8> places;
    for (int l = 0; l < lanes; ++l)
      places.push_back((8 * eight + static_cast<int>(part) * lanes + l) / region_.columns);
    const int from = places[0] / lanes;
    for (int& place : places) place -= from * lanes;
    return b_.CreateShuffleVector(rows.v[static_cast<size_t>(from)], places);
  })};
}

void Lowering::PackedBody() {
  rows_of_inputs_.assign(inputs_.size(), {});
  for (size_t k = 0; k < inputs_.size(); ++k)
    if (inputs_[k].at != nullptr) rows_of_inputs_[k] = PointerTo(inputs_[k], Get(j_));
  is_packed_ = true;
  ComputeAt(Rate::kPerRow, values_);
  is_packed_ = false;
  llvm::Value* const first_cell = b_.CreateNSWMul(Get(j_), Integer(region_.columns));
  FetchAhead(first_cell, region_.columns);
  for (int eight = 0; eight < region_.columns; ++eight) {
    llvm::Value* const place = Integer(int64_t{8} * eight);
    Values values(region_.nodes.size());
    for (size_t i = 0; i < values.size(); ++i) {
      if (rates_[i] == Rate::kPerRow) values[i] = SpreadRows(*values_[i], eight);
      if (!IsCells(i)) continue;
      const auto k = static_cast<size_t>(region_.nodes[i].input);
      values[i] = Load(PointerTo(
          UsesCells(region_.nodes[i]) ? PointerTo(inputs_[k], first_cell) : columns_repeated_[k], place));
    }
    values = Complete(std::move(values));
    Stores stores;
    for (size_t o = 0; o < outputs_.size(); ++o)
      stores.emplace_back(PointerTo(PointerTo(outputs_[o], first_cell), place),
                          *values[static_cast<size_t>(region_.outputs[o].node)]);
    WriteWhole(stores);
  }
}

}  // namespace heddle::codegen
