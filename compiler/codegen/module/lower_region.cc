// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/module/lower_region.h"

#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <cstddef>

#include "compiler/codegen/module/lowering.h"

namespace heddle::codegen {

using namespace ops::emitted;
using llvm::BasicBlock;
using ops::Access;
using ops::Region;
using ops::RegionCall;
using ops::RegionNode;
using ops::RegionOp;
using ops::RegionOutput;
using ops::Sink;

namespace {

// What is fetched at a time, and from how many pages side by side.
constexpr int64_t kAheadPages = 8, kPageBytes = 4096;
// How far ahead in the order of memory: as simd::Prefetch::kFar.
constexpr int64_t kAheadBytes = 8192;

// Lanes first ... first + width / 2 - 1.
llvm::SmallVector<int, 4> Half(int width, int first) {
  llvm::SmallVector<int, 4> lanes;
  for (int k = 0; k < width / 2; ++k) lanes.push_back(first + k);
  return lanes;
}

}  // namespace

llvm::Value* Lowering::Field(size_t offset, llvm::Type* type) {
  llvm::Value* const call = emitter_.function()->getArg(0);
  return b_.CreateAlignedLoad(type, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), call, offset),
                              llvm::Align(8));
}
llvm::Value* Lowering::Element(llvm::Value* array, int k, llvm::Type* type) {
  return b_.CreateAlignedLoad(type, b_.CreateConstInBoundsGEP1_64(type, array, static_cast<uint64_t>(k)),
                              llvm::Align(8));
}
llvm::AllocaInst* Lowering::Variable(llvm::Value* start, const char* name) {
  llvm::AllocaInst* const variable = emitter_.Reserve(start->getType(), name);
  b_.CreateStore(start, variable);
  return variable;
}
Lowering::Accumulator Lowering::NewAccumulator() {
  Accumulator accumulator;
  for (int k = 0; k < emitter_.parts(); ++k)
    accumulator.parts[static_cast<size_t>(k)] = emitter_.Reserve(emitter_.doubles(), "accumulator");
  return accumulator;
}
Vector Lowering::Get(const Accumulator& accumulator) {
  return {EachPart([&](size_t k) { return Get(accumulator.parts[k]); })};
}
void Lowering::Set(const Accumulator& accumulator, Vector value) {
  for (int k = 0; k < emitter_.parts(); ++k)
    b_.CreateStore(value.v[static_cast<size_t>(k)], accumulator.parts[static_cast<size_t>(k)]);
}

void Lowering::If(llvm::Value* condition, const std::function<void()>& then) {
  BasicBlock* const block = emitter_.NewBlock("then");
  BasicBlock* const after = emitter_.NewBlock("after");
  b_.CreateCondBr(condition, block, after);
  b_.SetInsertPoint(block);
  then();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

void Lowering::For(llvm::Value* count, const std::function<void(llvm::Value*)>& body) {
  If(b_.CreateICmpSGT(count, Integer(0)), [&] {
    BasicBlock* const before = b_.GetInsertBlock();
    BasicBlock* const loop = emitter_.NewBlock("loop");
    BasicBlock* const done = emitter_.NewBlock("done");
    b_.CreateBr(loop);
    b_.SetInsertPoint(loop);
    llvm::PHINode* const i = b_.CreatePHI(b_.getInt64Ty(), 2);
    i->addIncoming(Integer(0), before);
    body(i);
    llvm::Value* const next = b_.CreateNSWAdd(i, Integer(1));
    i->addIncoming(next, b_.GetInsertBlock());
    b_.CreateCondBr(b_.CreateICmpSLT(next, count), loop, done);
    b_.SetInsertPoint(done);
  });
}

bool Lowering::Any(Sink sink) const {
  return std::any_of(region_.outputs.begin(), region_.outputs.end(),
                     [&](const RegionOutput& o) { return o.sink == sink; });
}

void Lowering::FindRates() {
  for (const RegionNode& node : region_.nodes) {
    Rate rate = Rate::kOnce;
    if (node.op == RegionOp::kInput) {
      rate = node.access == Access::kScalar   ? Rate::kOnce
             : node.access == Access::kPerRow ? Rate::kPerRow
                                              : Rate::kPerCell;
    } else if (node.op != RegionOp::kLiteral) {
      rate = rates_[static_cast<size_t>(node.a)];
      if (node.op != RegionOp::kUnary) rate = std::max(rate, rates_[static_cast<size_t>(node.b)]);
      if (node.op == RegionOp::kSelect) rate = std::max(rate, rates_[static_cast<size_t>(node.c)]);
    }
    rates_.push_back(rate);
  }
}

void Lowering::ReadCall() {
  static_assert(ops::kRegionAbi == 4 && sizeof(RegionCall) == 56);
  llvm::Type* const pointer = b_.getPtrTy();
  llvm::Type* const integer = b_.getInt64Ty();
  rows_ = Variable(Field(offsetof(RegionCall, rows), integer), "rows");
  columns_ = Variable(Field(offsetof(RegionCall, columns), integer), "columns");
  llvm::Value* const inputs = Field(offsetof(RegionCall, inputs), pointer);
  llvm::Value* const input_strides = Field(offsetof(RegionCall, input_strides), pointer);
  llvm::Value* const outputs = Field(offsetof(RegionCall, outputs), pointer);
  llvm::Value* const output_strides = Field(offsetof(RegionCall, output_strides), pointer);
  const size_t input_count = static_cast<size_t>(region_.inputs);
  inputs_.resize(input_count);
  input_strides_.resize(input_count);
  for (const RegionNode& node : region_.nodes) {
    if (node.op != RegionOp::kInput) continue;
    const size_t k = static_cast<size_t>(node.input);
    if (inputs_[k].at == nullptr) inputs_[k] = {Element(inputs, node.input, pointer), node.single};
    const bool strided = node.access == Access::kCells || node.access == Access::kPerRow;
    if (strided && input_strides_[k] == nullptr)
      input_strides_[k] = Element(input_strides, node.input, integer);
  }
  for (size_t o = 0; o < region_.outputs.size(); ++o) {
    outputs_.emplace_back(Element(outputs, static_cast<int>(o), pointer), region_.outputs[o].single);
    const bool strided = region_.outputs[o].sink == Sink::kStore;
    output_strides_.push_back(strided ? Element(output_strides, static_cast<int>(o), integer) : nullptr);
  }
  stream_ = b_.CreateICmpNE(Field(offsetof(RegionCall, stream), integer), Integer(0));
}

// Rows without gaps are one long row, unless somebody asks where a row ends.
void Lowering::JoinRows() {
  if (Any(Sink::kFoldRows) || Any(Sink::kFoldColumns) || Any(Sink::kFoldFlat)) return;
  llvm::Value* joined = b_.getTrue();
  llvm::Value* const columns = Get(columns_);
  for (const RegionNode& node : region_.nodes) {
    if (node.op != RegionOp::kInput || node.access == Access::kScalar) continue;
    if (node.access != Access::kCells) return;
    joined = b_.CreateAnd(joined, b_.CreateICmpEQ(input_strides_[static_cast<size_t>(node.input)], columns));
  }
  for (llvm::Value* const stride : output_strides_)
    joined = b_.CreateAnd(joined, b_.CreateICmpEQ(stride, columns));
  llvm::Value* const rows = Get(rows_);
  b_.CreateStore(b_.CreateSelect(joined, b_.CreateMul(rows, columns), columns), columns_);
  b_.CreateStore(b_.CreateSelect(joined, Integer(1), rows), rows_);
}

// Inputs are fetched block after block (FetchAhead). The blocks of the first one begin at multiples of their
// size, so that one call goes on where the call before it ended; those of the others, beside them.
void Lowering::FindAhead() {
  for (const RegionNode& node : region_.nodes) {
    if (node.prefetch == ops::RowPrefetch::kNone) continue;
    const Cells input = inputs_[static_cast<size_t>(node.input)];
    if (ahead_first_ == nullptr) {
      llvm::Value* const address = b_.CreatePtrToInt(input.at, b_.getInt64Ty());
      ahead_first_ = b_.CreateLShr(b_.CreateAnd(address, Integer(kAheadPages * kPageBytes - 1)),
                                   Integer(input.single ? 2 : 3));
      ahead_row_ = ahead_first_;
    }
    prefetches_in_order_ = node.prefetch == ops::RowPrefetch::kInOrder;
    ahead_.push_back({b_.CreateGEP(input.type(), input.at, b_.CreateNeg(ahead_first_)), input.single});
  }
}

// The lines of so many eights from `cell` of the row on: those that lie kAheadBytes behind them, or those in
// the block after theirs whose turn it is, where eight pages take turns. Why and how fast: docs/fusion.md,
// section 3.
void Lowering::FetchAhead(llvm::Value* cell, int64_t eights) {
  if (ahead_.empty()) return;
  static_assert(kAheadPages == 8 && kPageBytes == 4096);
  const auto fetch = [&](llvm::Value* bytes) {  // To the second-level cache.
    for (const Cells& input : ahead_)
      b_.CreateIntrinsic(
          llvm::Intrinsic::prefetch, {b_.getPtrTy()},
          {b_.CreateGEP(b_.getInt8Ty(), input.at, bytes), b_.getInt32(0), b_.getInt32(2), b_.getInt32(1)});
  };
  const bool single = ahead_[0].single;
  const int64_t lines = single ? (eights + 1) / 2 : eights;
  llvm::Value* const first = b_.CreateLShr(b_.CreateNSWAdd(ahead_row_, cell), Integer(single ? 4 : 3));
  for (int64_t l = 0; l < lines; ++l) {
    llvm::Value* const line = b_.CreateAdd(first, Integer(l));
    if (prefetches_in_order_) {
      fetch(b_.CreateAdd(b_.CreateShl(line, Integer(6)), Integer(kAheadBytes)));
      continue;
    }
    // In lines: those of the blocks before, a page for each of eight, one for every eight.
    llvm::Value* const block = b_.CreateAnd(line, Integer(-512));
    llvm::Value* const page = b_.CreateShl(b_.CreateAnd(line, Integer(7)), Integer(6));
    llvm::Value* const in_page = b_.CreateLShr(b_.CreateAnd(line, Integer(504)), Integer(3));
    llvm::Value* const ahead = b_.CreateShl(b_.CreateOr(b_.CreateOr(block, page), in_page), Integer(6));
    fetch(b_.CreateAdd(ahead, Integer(kAheadPages * kPageBytes)));
  }
}

void Lowering::BeginRow(llvm::Value* i) {
  rows_of_inputs_.assign(inputs_.size(), {});
  rows_of_outputs_.assign(outputs_.size(), {});
  for (size_t k = 0; k < inputs_.size(); ++k)
    if (input_strides_[k] != nullptr)
      rows_of_inputs_[k] = PointerTo(inputs_[k], b_.CreateMul(i, input_strides_[k]));
  for (size_t o = 0; o < outputs_.size(); ++o)
    if (output_strides_[o] != nullptr)
      rows_of_outputs_[o] = PointerTo(outputs_[o], b_.CreateMul(i, output_strides_[o]));
  for (const RegionNode& node : region_.nodes)
    if (node.prefetch != ops::RowPrefetch::kNone)
      ahead_row_ =
          b_.CreateAdd(ahead_first_, b_.CreateMul(i, input_strides_[static_cast<size_t>(node.input)]));
  ComputeAt(Rate::kPerRow, values_);
  for (size_t o = 0; o < outputs_.size(); ++o)
    if (region_.outputs[o].sink == Sink::kFoldRows) Set(accumulators_[o], EmitStart(region_.outputs[o].fold));
}

// ((r0+r4)+(r2+r6)) + ((r1+r5)+(r3+r7)) with the fold in place of +: halves are folded again and again; these
// are of `width` lanes.
llvm::Value* Lowering::JoinLanes(const RegionOutput& output, Vector low, Vector high, int width) {
  const int lanes_before = emitter_.register_lanes(), parts_before = emitter_.parts();
  for (; width >= 1; width /= 2) {
    emitter_.SetShape(width, 1);
    low = EmitFold(output.fold, low, high);
    if (width == 1) break;
    high.v[0] = b_.CreateShuffleVector(low.v[0], Half(width, width / 2));
    low.v[0] = b_.CreateShuffleVector(low.v[0], Half(width, 0));
  }
  emitter_.SetShape(lanes_before, parts_before);
  llvm::Value* const joined = b_.CreateExtractElement(low.v[0], uint64_t{0});
  return output.is_mean ? b_.CreateFDiv(joined, b_.CreateSIToFP(row_columns_, b_.getDoubleTy())) : joined;
}

void Lowering::EndRow(llvm::Value* i) {
  for (size_t o = 0; o < outputs_.size(); ++o) {
    if (region_.outputs[o].sink != Sink::kFoldRows) continue;
    Vector low = Get(accumulators_[o]), high = low;
    if (emitter_.parts() == 1) {
      low.v[0] = b_.CreateShuffleVector(low.v[0], {0, 1, 2, 3});
      high.v[0] = b_.CreateShuffleVector(high.v[0], {4, 5, 6, 7});
    } else {
      high.v[0] = high.v[1];
    }
    b_.CreateAlignedStore(JoinLanes(region_.outputs[o], low, high, 4), PointerTo(outputs_[o], i).at,
                          llvm::Align(8));
  }
}

void Lowering::Run() {
  FindRates();
  ReadCall();
  FindAhead();
  if (region_.columns > 0) return EmitNarrowRows();
  JoinRows();
  j_ = Variable(Integer(0), "j");
  count_ = Variable(Integer(0), "count");
  place_ = Variable(Integer(0), "place");
  row_stream_ = Variable(b_.getFalse(), "row_stream");
  accumulators_.resize(outputs_.size());
  for (size_t o = 0; o < outputs_.size(); ++o) {
    const Sink sink = region_.outputs[o].sink;
    if (sink == Sink::kFoldFlat) eights_ = region_.outputs[o].eights;
    if (sink == Sink::kFoldRows || (sink == Sink::kFoldFlat && eights_ == 1))
      accumulators_[o] = NewAccumulator();
    if (sink == Sink::kFoldFlat && eights_ == 1) Set(accumulators_[o], Load(outputs_[o]));
  }
  ComputeAt(Rate::kOnce, values_);
  row_columns_ = Get(columns_);
  For(Get(rows_), [&](llvm::Value* i) {
    BeginRow(i);
    EmitColumns();
    EndRow(i);
  });
  for (size_t o = 0; o < outputs_.size(); ++o)
    if (region_.outputs[o].sink == Sink::kFoldFlat && eights_ == 1) Store(outputs_[o], Get(accumulators_[o]));
  if (Any(Sink::kStore)) If(stream_, [&] { b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {}); });
  b_.CreateRetVoid();
}

std::unique_ptr<llvm::Module> LowerRegion(const Region& region, int register_lanes,
                                          llvm::LLVMContext& context) {
  auto module = std::make_unique<llvm::Module>("region", context);
  auto* const type =
      llvm::FunctionType::get(llvm::Type::getVoidTy(context), {llvm::PointerType::getUnqual(context)}, false);
  auto* const function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, kEntryPoint, *module);
  function->setDoesNotThrow();
  function->addParamAttr(0, llvm::Attribute::NoAlias);
  function->addParamAttr(0, llvm::Attribute::NonNull);
  function->addParamAttr(0, llvm::Attribute::ReadOnly);
  function->addFnAttr("no-builtins");
  function->addFnAttr("prefer-vector-width", register_lanes == 8 ? "512" : "256");
  function->addFnAttr("min-legal-vector-width", register_lanes == 8 ? "512" : "256");
  Lowering(region, function, register_lanes).Run();
  return module;
}

}  // namespace heddle::codegen
