// SPDX-License-Identifier: Apache-2.0
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <utility>

#include "ops/simd/single_vector.h"
#include "ops/simd/vector.h"

namespace heddle::ops::emitted {
namespace {

llvm::Type* WithFloats(llvm::Value* value) {
  return value->getType()->getWithNewType(Builder().getFloatTy());
}

// The floats that a value of doubles is made of, null where it may be none.
llvm::Value* FloatsOf(llvm::Value* value) {
  if (const auto* const widened = llvm::dyn_cast<llvm::FPExtInst>(value)) return widened->getOperand(0);
  const auto* const constant = llvm::dyn_cast<llvm::Constant>(value);
  const auto* const cell =
      constant == nullptr ? nullptr : llvm::dyn_cast_or_null<llvm::ConstantFP>(constant->getSplatValue());
  if (cell == nullptr || cell->getValueAPF().isNaN()) return nullptr;
  llvm::APFloat single = cell->getValueAPF();
  bool loses = false;
  single.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &loses);
  if (loses) return nullptr;
  return llvm::ConstantVector::getSplat(Lanes(), llvm::ConstantFP::get(Builder().getContext(), single));
}

// A value of doubles rounded to floats. A sum, difference, product, quotient or root of floats, rounded to a
// double and then to a float, is that of floats (docs/numerics.md, section 9): it is computed as such.
llvm::Value* AsFloats(llvm::Value* value) {
  if (llvm::Value* const floats = FloatsOf(value)) return floats;
  llvm::IRBuilder<>& builder = Builder();
  if (const auto* const operation = llvm::dyn_cast<llvm::BinaryOperator>(value)) {
    llvm::Value *const a = FloatsOf(operation->getOperand(0)), *const b = FloatsOf(operation->getOperand(1));
    if (a != nullptr && b != nullptr) return builder.CreateBinOp(operation->getOpcode(), a, b);
  }
  if (const auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(value);
      call != nullptr && call->getIntrinsicID() == llvm::Intrinsic::sqrt)
    if (llvm::Value* const a = FloatsOf(call->getArgOperand(0)))
      return builder.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a);
  return builder.CreateFPTrunc(value, WithFloats(value));
}

Cells PartPointer(Cells cells, size_t part) {
  return {Builder().CreateConstInBoundsGEP1_64(
              cells.type(), cells.at, part * static_cast<uint64_t>(Emitter::Current().register_lanes())),
          cells.single};
}

// A value of `cells` as one of doubles, and back; vectors of any length.
llvm::Value* Widened(Cells cells, llvm::Value* value) {
  return cells.single
             ? Builder().CreateFPExt(value, value->getType()->getWithNewType(Builder().getDoubleTy()))
             : value;
}
llvm::Value* Narrowed(Cells cells, llvm::Value* value) { return cells.single ? AsFloats(value) : value; }
llvm::Type* Registers(Cells cells) { return llvm::VectorType::get(cells.type(), Lanes()); }

using Stores =
    llvm::SmallVector<std::pair<Cells, llvm::Value*>, 4>;  // where, which lanes: of the type of the cells

/// If `count` has the bit `width`: stores the lower half of each value, and goes on with the upper half
/// behind it; else goes on with the lower half. Values have 2 * width lanes.
void StoreHalf(Stores& stores, llvm::Value* count, int width) {
  Emitter& emitter = Emitter::Current();
  llvm::IRBuilder<>& builder = emitter.builder;
  llvm::SmallVector<int, 4> low, high;
  for (int k = 0; k < width; ++k) {
    low.push_back(k);
    high.push_back(width + k);
  }
  llvm::SmallVector<llvm::Value*, 4> lower;
  for (const auto& [cells, value] : stores) lower.push_back(builder.CreateShuffleVector(value, low));
  llvm::BasicBlock* const before = builder.GetInsertBlock();
  llvm::BasicBlock* const then = emitter.NewBlock("store");
  llvm::BasicBlock* const after = emitter.NewBlock("stored");
  llvm::Value* const has =
      builder.CreateICmpNE(builder.CreateAnd(count, emitter.Integer(width)), emitter.Integer(0));
  builder.CreateCondBr(has, then, after);
  builder.SetInsertPoint(then);
  llvm::SmallVector<llvm::Value*, 4> upper;
  llvm::SmallVector<Cells, 4> behind;
  for (size_t k = 0; k < stores.size(); ++k) {
    builder.CreateAlignedStore(lower[k], stores[k].first.at, stores[k].first.align());
    upper.push_back(builder.CreateShuffleVector(stores[k].second, high));
    behind.push_back(PointerTo(stores[k].first, emitter.Integer(width)));
  }
  builder.CreateBr(after);
  builder.SetInsertPoint(after);
  for (size_t k = 0; k < stores.size(); ++k) {
    llvm::PHINode* const cells = builder.CreatePHI(behind[k].at->getType(), 2);
    cells->addIncoming(behind[k].at, then);
    cells->addIncoming(stores[k].first.at, before);
    llvm::PHINode* const rest = builder.CreatePHI(lower[k]->getType(), 2);
    rest->addIncoming(upper[k], then);
    rest->addIncoming(lower[k], before);
    stores[k] = {Cells(cells, stores[k].first.single), rest};
  }
}

constexpr int kLowerEight[] = {0, 1, 2, 3, 4, 5, 6, 7}, kUpperEight[] = {8, 9, 10, 11, 12, 13, 14, 15};
constexpr int kBothEights[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

// The lanes of `part` that `lanes` names, floats while they are some.
llvm::Value* Shuffled(llvm::Value* part, llvm::ArrayRef<int> lanes) {
  llvm::IRBuilder<>& builder = Builder();
  const auto* const widened = llvm::dyn_cast<llvm::FPExtInst>(part);
  if (widened == nullptr) return builder.CreateShuffleVector(part, lanes);
  llvm::Value* const floats = builder.CreateShuffleVector(widened->getOperand(0), lanes);
  return builder.CreateFPExt(floats, floats->getType()->getWithNewType(builder.getDoubleTy()));
}

// The intrinsics of AVX-512 take eight lanes, a value for those that a mask leaves out, the mask, and the
// mode of rounding.
llvm::Value* CallMasked(llvm::Intrinsic::ID id, llvm::SmallVector<llvm::Value*, 8> arguments,
                        bool has_source = true) {
  Emitter& emitter = Emitter::Current();
  if (emitter.register_lanes() == 16) {
    emitter.SetShape(8, emitter.parts());
    llvm::Value* results[2];
    for (int half = 0; half < 2; ++half) {
      llvm::SmallVector<llvm::Value*, 8> of_half;
      for (llvm::Value* const argument : arguments)
        of_half.push_back(argument->getType()->isVectorTy() ? HalfOf(argument, half) : argument);
      results[half] = CallMasked(id, of_half, has_source);
    }
    emitter.SetShape(16, emitter.parts());
    return emitter.builder.CreateShuffleVector(results[0], results[1], kBothEights);
  }
  if (has_source) arguments.push_back(llvm::Constant::getNullValue(emitter.doubles()));
  arguments.push_back(emitter.builder.getInt8(0xff));
  arguments.push_back(emitter.builder.getInt32(4));  // As MXCSR says.
  return emitter.builder.CreateIntrinsic(id, {}, arguments);
}

}  // namespace

Vector ScaleExponent(Vector x, Vector k) {
  return {EachPart([&](size_t p) {
    return CallMasked(llvm::Intrinsic::x86_avx512_mask_scalef_pd_512, {x.v[p], k.v[p]});
  })};
}
Vector ExponentOf(Vector x) {
  return {EachPart(
      [&](size_t p) { return CallMasked(llvm::Intrinsic::x86_avx512_mask_getexp_pd_512, {x.v[p]}); })};
}
Vector MantissaOf(Vector x) {
  llvm::Value* const without_sign = Builder().getInt32(4);  // From 1 to 2.
  return {EachPart([&](size_t p) {
    return CallMasked(llvm::Intrinsic::x86_avx512_mask_getmant_pd_512, {x.v[p], without_sign});
  })};
}
Vector FixSpecials(Vector result, Vector x, int64_t table) {
  const Integers tables = BroadcastInteger(table);
  return {EachPart([&](size_t p) {
    return CallMasked(llvm::Intrinsic::x86_avx512_mask_fixupimm_pd_512,
                      {result.v[p], x.v[p], tables.v[p], Builder().getInt32(0)}, false);
  })};
}

Vector ToSingle(Vector a) {
  return {EachPart(
      [&](size_t k) { return Builder().CreateFPExt(AsFloats(a.v[k]), Emitter::Current().doubles()); })};
}

Singles Narrow(Vector a) {
  if (PartsTogether() == 1) return {EachSingles([&](size_t k) { return AsFloats(a.v[k]); })};
  return {EachSingles([&](size_t k) {
    return Builder().CreateShuffleVector(AsFloats(a.v[2 * k]), AsFloats(a.v[2 * k + 1]),
                                         {0, 1, 2, 3, 4, 5, 6, 7});
  })};
}
Vector Widen(Singles a) {
  const size_t together = static_cast<size_t>(PartsTogether());
  return {EachPart([&](size_t k) {
    llvm::Value* floats = a.v[k / together];
    if (together == 2)
      floats = Builder().CreateShuffleVector(
          floats, k % 2 == 0 ? llvm::ArrayRef<int>({0, 1, 2, 3}) : llvm::ArrayRef<int>({4, 5, 6, 7}));
    return Builder().CreateFPExt(floats, Emitter::Current().doubles());
  })};
}

Cells PointerTo(Cells cells, llvm::Value* index) {
  return {Builder().CreateInBoundsGEP(cells.type(), cells.at, index), cells.single};
}

Vector Load(Cells cells) {
  return {EachPart([&](size_t k) {
    return Widened(cells,
                   Builder().CreateAlignedLoad(Registers(cells), PartPointer(cells, k).at, cells.align()));
  })};
}

Mask FirstLanes(llvm::Value* count) {
  const Parts counts = Splat(count);
  const int lanes = Emitter::Current().register_lanes();
  return {EachPart([&](size_t part) {
    llvm::SmallVector<llvm::Constant*, 8> numbers;
    for (int k = 0; k < lanes; ++k)
      numbers.push_back(Emitter::Current().Integer(static_cast<int>(part) * lanes + k));
    return Builder().CreateICmpSGT(counts[part], llvm::ConstantVector::get(numbers));
  })};
}

Vector LoadWhere(Mask mask, Cells cells) {
  llvm::Constant* const zero = llvm::Constant::getNullValue(Registers(cells));
  return {EachPart([&](size_t k) {
    return Widened(cells, Builder().CreateMaskedLoad(Registers(cells), PartPointer(cells, k).at,
                                                     cells.align(), mask.v[k], zero));
  })};
}

// One or two cells are repeated, not followed by zeros: LLVM 19 takes zero / zero in lanes that it knows to
// be zero for zero and drops the mask behind the division.
Vector LoadFirstOfFour(Cells cells, int count) {
  llvm::IRBuilder<>& builder = Builder();
  if (count == 4) return Load(cells);
  if (count == 1) return BroadcastFrom(cells);
  if (count == 3) return LoadWhere(FirstLanes(Emitter::Current().Integer(count)), cells);
  llvm::Value* const two = Widened(
      cells, builder.CreateAlignedLoad(llvm::FixedVectorType::get(cells.type(), 2), cells.at, cells.align()));
  return {{builder.CreateShuffleVector(two, {0, 1, 0, 1})}};
}

void StoreFirstOfFour(Cells cells, Vector a, int count) {
  if (count == 4) return Store(cells, a);
  llvm::IRBuilder<>& builder = Builder();
  if (count >= 2)
    builder.CreateAlignedStore(Narrowed(cells, builder.CreateShuffleVector(a.v[0], {0, 1})), cells.at,
                               cells.align());
  if (count == 2) return;
  const auto last = static_cast<uint64_t>(count - 1);
  builder.CreateAlignedStore(Narrowed(cells, builder.CreateExtractElement(a.v[0], last)),
                             builder.CreateConstInBoundsGEP1_64(cells.type(), cells.at, last), cells.align());
}

Vector BroadcastFrom(Cells cell) {
  const Parts all = Splat(Builder().CreateAlignedLoad(cell.type(), cell.at, cell.align()));
  return {EachPart([&](size_t k) { return Widened(cell, all[k]); })};
}

void Store(Cells cells, Vector a) {
  for (int k = 0; k < Emitter::Current().parts(); ++k)
    Builder().CreateAlignedStore(Narrowed(cells, a.v[static_cast<size_t>(k)]),
                                 PartPointer(cells, static_cast<size_t>(k)).at, cells.align());
}

void Stream(Cells cells, Vector a) {
  llvm::MDNode* const one =
      llvm::MDNode::get(Builder().getContext(),
                        llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(Builder().getInt32Ty(), 1)));
  const int lanes = Emitter::Current().register_lanes();
  const auto stream = [&](llvm::Value* value, Cells at) {
    const auto bytes = static_cast<uint64_t>(std::min(lanes, 8)) * cells.align().value();
    Builder()
        .CreateAlignedStore(value, at.at, llvm::Align(bytes))
        ->setMetadata(llvm::LLVMContext::MD_nontemporal, one);
  };
  for (int k = 0; k < Emitter::Current().parts(); ++k) {
    llvm::Value* const value = Narrowed(cells, a.v[static_cast<size_t>(k)]);
    const Cells at = PartPointer(cells, static_cast<size_t>(k));
    if (lanes <= 8) {
      stream(value, at);
      continue;
    }
    for (int half = 0; half < 2; ++half)
      stream(HalfOf(value, half), PointerTo(at, Emitter::Current().Integer(8 * half)));
  }
}

// By halves: the masked store of AVX2 is slow on AMD's processors.
void StoreFirst(llvm::ArrayRef<std::pair<Cells, Vector>> stores, llvm::Value* count) {
  Emitter& emitter = Emitter::Current();
  if (emitter.parts() == 1) {
    const Mask mask = FirstLanes(count);
    for (const auto& [cells, value] : stores)
      emitter.builder.CreateMaskedStore(Narrowed(cells, value.v[0]), cells.at, cells.align(), mask.v[0]);
    return;
  }
  Stores rest;
  for (const auto& [cells, value] : stores)
    rest.push_back({cells, Narrowed(cells, emitter.builder.CreateShuffleVector(value.v[0], value.v[1],
                                                                               {0, 1, 2, 3, 4, 5, 6, 7}))});
  StoreHalf(rest, count, 4);
  StoreHalf(rest, count, 2);
  StoreHalf(rest, count, 1);
}

llvm::Value* Lane(Vector a, int k) {
  const int lanes = Emitter::Current().register_lanes();
  return Builder().CreateExtractElement(a.v[static_cast<size_t>(k / lanes)],
                                        static_cast<uint64_t>(k % lanes));
}

llvm::Value* Twice(llvm::Value* part) {
  static constexpr int kTwice[] = {0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7};
  return Shuffled(part, kTwice);
}
llvm::Value* HalfOf(llvm::Value* part, int half) {
  return Shuffled(part, half == 0 ? kLowerEight : kUpperEight);
}

Vector CallKernel(const char* symbol, Vector a) {
  Emitter& emitter = Emitter::Current();
  llvm::IRBuilder<>& builder = emitter.builder;
  llvm::Type* const pointer = builder.getPtrTy();
  llvm::FunctionCallee kernel = emitter.function()->getParent()->getOrInsertFunction(
      symbol, llvm::FunctionType::get(builder.getVoidTy(),
                                      {pointer, pointer, builder.getInt64Ty(), builder.getInt1Ty()}, false));
  auto* const callee = llvm::cast<llvm::Function>(kernel.getCallee());
  callee->setDoesNotThrow();
  callee->addParamAttr(3, llvm::Attribute::ZExt);
  const int count = emitter.register_lanes() * emitter.parts();
  llvm::AllocaInst* const cells =
      emitter.Reserve(llvm::ArrayType::get(builder.getDoubleTy(), static_cast<uint64_t>(count)), "cells");
  cells->setAlignment(llvm::Align(64));
  Store(cells, a);
  builder.CreateCall(kernel, {cells, cells, emitter.Integer(count), builder.getFalse()});
  return Load(cells);
}

}  // namespace heddle::ops::emitted
