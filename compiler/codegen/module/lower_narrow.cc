// SPDX-License-Identifier: Apache-2.0
// Regions of a known, small number of columns. A row is unrolled into registers of four lanes (also where the
// machine has eight: rows do not begin at lines), and no loop runs along it; four rows are in flight where
// rows are folded, so that they share the shuffles that join their lanes. Sums of columns stay in registers
// from the first row to the last.
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>

#include "compiler/codegen/module/lowering.h"

namespace heddle::codegen {

using namespace ops::emitted;
using llvm::BasicBlock;
using ops::Access;
using ops::RegionNode;
using ops::RegionOutput;
using ops::Sink;

namespace {
constexpr int kRowsAtOnce = 4;
}  // namespace

std::vector<Lowering::Piece> Lowering::Pieces() const {
  std::vector<Piece> pieces;
  for (int64_t j = 0; j < region_.columns; j += 4)
    pieces.push_back({j, static_cast<int>(std::min<int64_t>(4, region_.columns - j))});
  return pieces;
}

void Lowering::EmitNarrowRows() {
  row_columns_ = Integer(region_.columns);
  j_ = Variable(Integer(0), "row");
  row_stream_ = Variable(b_.getFalse(), "row_stream");
  emitter_.SetShape(4, 1);
  ComputeAt(Rate::kOnce, values_);
  const std::vector<Piece> pieces = Pieces();
  sums_.resize(outputs_.size());
  llvm::Value* streams = stream_;
  for (size_t o = 0; o < outputs_.size(); ++o) {
    if (region_.outputs[o].sink == Sink::kFoldRows) {
      llvm::Value* const address = b_.CreatePtrToInt(outputs_[o].at, b_.getInt64Ty());
      streams = b_.CreateAnd(streams, b_.CreateICmpEQ(b_.CreateAnd(address, Integer(31)), Integer(0)));
    }
    if (region_.outputs[o].sink != Sink::kFoldColumns) continue;
    for (const Piece& piece : pieces) {
      sums_[o].push_back(NewAccumulator());
      Set(sums_[o].back(), Load(PointerTo(outputs_[o], Integer(piece.first))));
    }
  }
  b_.CreateStore(streams, row_stream_);
  NarrowLoop(kRowsAtOnce, [&] { NarrowBody(kRowsAtOnce); });
  NarrowLoop(1, [&] { NarrowBody(1); });
  for (size_t o = 0; o < outputs_.size(); ++o)
    for (size_t p = 0; p < sums_[o].size(); ++p)
      Store(PointerTo(outputs_[o], Integer(pieces[p].first)), Get(sums_[o][p]));
  If(stream_, [&] { b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {}); });
  b_.CreateRetVoid();
}

// while (row + rows <= all rows) body
void Lowering::NarrowLoop(int rows, const std::function<void()>& body) {
  llvm::Value* const last = b_.CreateNSWSub(Get(rows_), Integer(rows));
  If(b_.CreateICmpSLE(Get(j_), last), [&] {
    BasicBlock* const loop = emitter_.NewBlock("rows");
    BasicBlock* const done = emitter_.NewBlock("rows_done");
    b_.CreateBr(loop);
    b_.SetInsertPoint(loop);
    body();
    b_.CreateStore(b_.CreateNSWAdd(Get(j_), Integer(rows)), j_);
    b_.CreateCondBr(b_.CreateICmpSLE(Get(j_), last), loop, done);
    b_.SetInsertPoint(done);
  });
}

void Lowering::NarrowBody(int rows) {
  if (rows > 1)
    FetchAhead(b_.CreateNSWMul(Get(j_), Integer(region_.columns)), (rows * region_.columns + 7) / 8);
  std::array<std::vector<Vector>, kRowsAtOnce> folded;
  for (int r = 0; r < rows; ++r) folded[static_cast<size_t>(r)] = NarrowRow(Get(j_), r);
  Stores stores;
  for (size_t o = 0; o < outputs_.size(); ++o) {
    if (region_.outputs[o].sink != Sink::kFoldRows) continue;
    const Cells cells = PointerTo(outputs_[o], Get(j_));
    if (rows == kRowsAtOnce) {
      std::array<Vector, 4> lanes;
      for (size_t r = 0; r < lanes.size(); ++r) lanes[r] = folded[r][o];
      stores.emplace_back(cells, JoinFourRows(region_.outputs[o], lanes));
    } else {
      const Vector four = folded[0][o];
      Vector low = four, high = four;
      low.v[0] = b_.CreateShuffleVector(four.v[0], {0, 1});
      high.v[0] = b_.CreateShuffleVector(four.v[0], {2, 3});
      b_.CreateAlignedStore(JoinLanes(region_.outputs[o], low, high, 2), cells.at, llvm::Align(8));
    }
  }
  WriteWhole(stores);
}

// The row `row_in_body` of those that begin at `first_row`. Returns, for each output that folds rows, its
// eight lanes joined once: r0+r4, r1+r5, r2+r6, r3+r7.
std::vector<Vector> Lowering::NarrowRow(llvm::Value* first_row, int row_in_body) {
  llvm::Value* const row = b_.CreateNSWAdd(first_row, Integer(row_in_body));
  rows_of_inputs_.assign(inputs_.size(), {});
  for (const RegionNode& node : region_.nodes)
    if (node.op == ops::RegionOp::kInput && node.access == Access::kPerRow) {
      const auto k = static_cast<size_t>(node.input);
      rows_of_inputs_[k] = PointerTo(inputs_[k], row);
    }
  ComputeAt(Rate::kPerRow, values_);
  // One sum for all rows of the body, and a constant that is part of the instruction.
  llvm::Value* const first_cell = b_.CreateNSWMul(first_row, Integer(region_.columns));
  const int64_t row_offset = row_in_body * region_.columns;
  std::vector<std::array<Vector, 2>> lanes(outputs_.size());
  const std::vector<Piece> pieces = Pieces();
  for (size_t p = 0; p < pieces.size(); ++p) {
    const Piece piece = pieces[p];
    const Values values = ComputePiece(first_cell, row_offset, piece);
    const Mask mask = FirstLanes(Integer(piece.lanes));
    for (size_t o = 0; o < outputs_.size(); ++o) {
      const RegionOutput& output = region_.outputs[o];
      const Vector value = *values[static_cast<size_t>(output.node)];
      if (output.sink == Sink::kStore) {
        StoreFirstOfFour(PointerTo(PointerTo(outputs_[o], first_cell), Integer(row_offset + piece.first)),
                         value, piece.lanes);
      } else if (output.sink == Sink::kFoldColumns) {
        Set(sums_[o][p], EmitFold(output.fold, Get(sums_[o][p]), value));
      } else {
        Vector& half = lanes[o][p % 2];
        const Vector before = p < 2 ? EmitStart(output.fold) : half;
        const Vector after = EmitFold(output.fold, before, value);
        half = piece.lanes == 4 ? after : Select(mask, after, before);
      }
    }
  }
  std::vector<Vector> folded(outputs_.size());
  for (size_t o = 0; o < outputs_.size(); ++o)
    if (region_.outputs[o].sink == Sink::kFoldRows)  // Up to four columns the upper lanes are absent.
      folded[o] =
          pieces.size() == 1 ? lanes[o][0] : EmitFold(region_.outputs[o].fold, lanes[o][0], lanes[o][1]);
  return folded;
}

Lowering::Values Lowering::ComputePiece(llvm::Value* first_cell, int64_t row_offset, Piece piece) {
  Values values(region_.nodes.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (!IsCells(i)) continue;
    const Cells input = inputs_[static_cast<size_t>(region_.nodes[i].input)];
    const Cells cells = UsesCells(region_.nodes[i])
                            ? PointerTo(PointerTo(input, first_cell), Integer(row_offset + piece.first))
                            : PointerTo(input, Integer(piece.first));
    values[i] = LoadFirstOfFour(cells, piece.lanes);
  }
  return Complete(std::move(values));
}

// The rest of L for four rows. Of the rows (0, 2) and (1, 3) together, so that the results come out in order.
Vector Lowering::JoinFourRows(const RegionOutput& output, std::array<Vector, 4> rows) {
  const auto fold_halves = [&](Vector a, Vector b) {
    return EmitFold(output.fold, {{b_.CreateShuffleVector(a.v[0], b.v[0], {0, 1, 4, 5})}},
                    {{b_.CreateShuffleVector(a.v[0], b.v[0], {2, 3, 6, 7})}});
  };
  const Vector even = fold_halves(rows[0], rows[2]), odd = fold_halves(rows[1], rows[3]);
  const Vector joined = EmitFold(output.fold, {{b_.CreateShuffleVector(even.v[0], odd.v[0], {0, 4, 2, 6})}},
                                 {{b_.CreateShuffleVector(even.v[0], odd.v[0], {1, 5, 3, 7})}});
  return output.is_mean ? joined / Broadcast(static_cast<double>(region_.columns)) : joined;
}

}  // namespace heddle::codegen
