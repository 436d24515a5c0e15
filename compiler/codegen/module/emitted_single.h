// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compiler/codegen/module/emitted_vector.h"

// The interface of ops/simd/single_vector.h once more, where every function emits the LLVM IR of what its
// namesake there does. Eight floats are one value, two registers of four doubles side by side.
namespace heddle::ops::emitted {

struct Singles {
  Parts v;
};  ///< 8 floats, or as many as a Vector has lanes.
struct SingleMask {
  Parts v;
};
struct SingleIntegers {
  Parts v;
};  ///< 32-bit integers.

/// Parts of a Vector in one value of floats.
inline int PartsTogether() {
  return Emitter::Current().register_lanes() == 4 && Emitter::Current().parts() % 2 == 0 ? 2 : 1;
}
inline unsigned SingleLanes() {
  return static_cast<unsigned>(Emitter::Current().register_lanes() * PartsTogether());
}
template <typename Function>
Parts EachSingles(Function function) {
  Parts parts = {};
  for (int k = 0; k < Emitter::Current().parts() / PartsTogether(); ++k)
    parts[static_cast<size_t>(k)] = function(static_cast<size_t>(k));
  return parts;
}
inline llvm::FixedVectorType* Floats() {
  return llvm::FixedVectorType::get(Builder().getFloatTy(), SingleLanes());
}
inline llvm::FixedVectorType* SmallIntegers() {
  return llvm::FixedVectorType::get(Builder().getInt32Ty(), SingleLanes());
}

Singles Narrow(Vector a);
Vector Widen(Singles a);

inline Singles BroadcastSingle(float x) {
  llvm::Constant* const one = llvm::ConstantFP::get(Builder().getContext(), llvm::APFloat(x));
  llvm::Value* const all = llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(SingleLanes()), one);
  return {EachSingles([&](size_t) { return all; })};
}
inline SingleIntegers BroadcastSingleInteger(int32_t x) {
  llvm::Value* const all = llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(SingleLanes()),
                                                          Builder().getInt32(static_cast<uint32_t>(x)));
  return {EachSingles([&](size_t) { return all; })};
}
inline SingleIntegers BitsOf(Singles a) {
  return {EachSingles([&](size_t k) { return Builder().CreateBitCast(a.v[k], SmallIntegers()); })};
}
inline Singles OfBits(SingleIntegers a) {
  return {EachSingles([&](size_t k) { return Builder().CreateBitCast(a.v[k], Floats()); })};
}

#define HEDDLE_EMIT_BINARY(Result, Name, Type, create)                                \
  inline Result Name(Type a, Type b) {                                                \
    return {EachSingles([&](size_t k) { return Builder().create(a.v[k], b.v[k]); })}; \
  }
HEDDLE_EMIT_BINARY(Singles, operator+, Singles, CreateFAdd)
HEDDLE_EMIT_BINARY(Singles, operator-, Singles, CreateFSub)
HEDDLE_EMIT_BINARY(Singles, operator*, Singles, CreateFMul)
HEDDLE_EMIT_BINARY(Singles, operator/, Singles, CreateFDiv)
HEDDLE_EMIT_BINARY(SingleMask, Less, Singles, CreateFCmpOLT)
HEDDLE_EMIT_BINARY(SingleMask, Equal, Singles, CreateFCmpOEQ)
HEDDLE_EMIT_BINARY(SingleIntegers, operator+, SingleIntegers, CreateAdd)
HEDDLE_EMIT_BINARY(SingleIntegers, operator-, SingleIntegers, CreateSub)
HEDDLE_EMIT_BINARY(SingleIntegers, operator&, SingleIntegers, CreateAnd)
HEDDLE_EMIT_BINARY(SingleIntegers, operator|, SingleIntegers, CreateOr)
#undef HEDDLE_EMIT_BINARY

inline Singles Select(SingleMask mask, Singles a, Singles b) {
  return {EachSingles([&](size_t k) { return Builder().CreateSelect(mask.v[k], a.v[k], b.v[k]); })};
}
/// x86 min/max: b where a and b are unordered or equal.
inline Singles Min(Singles a, Singles b) { return Select(Less(a, b), a, b); }
inline Singles Max(Singles a, Singles b) { return Select(Less(b, a), a, b); }
inline Singles Fma(Singles a, Singles b, Singles c) {
  return {EachSingles([&](size_t k) {
    return Emitter::Current().Intrinsic(llvm::Intrinsic::fma, Floats(), {a.v[k], b.v[k], c.v[k]});
  })};
}
inline Singles Fnma(Singles a, Singles b, Singles c) {
  return Fma({EachSingles([&](size_t k) { return Builder().CreateFNeg(a.v[k]); })}, b, c);
}
template <int kBits>
SingleIntegers ShiftLeft(SingleIntegers a) {
  return {EachSingles([&](size_t k) { return Builder().CreateShl(a.v[k], kBits); })};
}
template <int kBits>
SingleIntegers ShiftRightSigned(SingleIntegers a) {
  return {EachSingles([&](size_t k) { return Builder().CreateAShr(a.v[k], kBits); })};
}
inline Singles ToSingles(SingleIntegers a) {
  return {EachSingles([&](size_t k) { return Builder().CreateSIToFP(a.v[k], Floats()); })};
}

}  // namespace heddle::ops::emitted
