// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

#include <array>

#include "compiler/codegen/module/emitter.h"

// The interface of ops/simd/vector.h once more, where every function emits the LLVM IR of what its namesake
// there does. ops/simd/vector.h includes this file (HEDDLE_SIMD_VECTOR_HEADER) in the files of this folder
// that need it, so that the operators and functions of ops/simd/cellwise/cell_operators.h become generators
// of themselves: one source, the same bits. No fast-math flags, no intrinsic that is not exact.
#define HEDDLE_SIMD_NAMESPACE emitted
#define HEDDLE_SIMD_SINGLE_HEADER "compiler/codegen/module/emitted_single.h"
#define HEDDLE_SIMD_INLINE [[maybe_unused]] static inline

namespace heddle::ops::emitted {

constexpr int64_t kLanes = 8;

using codegen::Emitter;
/// Eight lanes as one value (registers of eight) or two (of four), lanes 0-3 first; or several eights.
constexpr int kMostParts = 4;
using Parts = std::array<llvm::Value*, kMostParts>;
struct Vector {
  Parts v;
};  ///< 8 doubles.
struct Mask {
  Parts v;
};  ///< 8 booleans.
struct Integers {
  Parts v;
};  ///< 8 64-bit integers.

template <typename Function>
Parts EachPart(Function function) {
  Parts parts = {};
  for (int k = 0; k < Emitter::Current().parts(); ++k)
    parts[static_cast<size_t>(k)] = function(static_cast<size_t>(k));
  return parts;
}
inline llvm::IRBuilder<>& Builder() { return Emitter::Current().builder; }
inline llvm::ElementCount Lanes() {
  return llvm::ElementCount::getFixed(static_cast<unsigned>(Emitter::Current().register_lanes()));
}

inline Parts Splat(llvm::Value* scalar) {
  llvm::Value* const all = Builder().CreateVectorSplat(Lanes(), scalar);
  return EachPart([&](size_t) { return all; });
}
inline Parts SplatConstant(llvm::Constant* scalar) {
  return EachPart([&](size_t) { return llvm::ConstantVector::getSplat(Lanes(), scalar); });
}
inline Vector Broadcast(double x) {
  return {SplatConstant(llvm::ConstantFP::get(Builder().getDoubleTy(), x))};
}
inline Vector Zero() { return Broadcast(0.0); }
inline Integers BroadcastInteger(int64_t x) { return {SplatConstant(Emitter::Current().Integer(x))}; }

inline Integers BitsOf(Vector a) {
  return {EachPart([&](size_t k) { return Builder().CreateBitCast(a.v[k], Emitter::Current().integers()); })};
}
inline Vector OfBits(Integers a) {
  return {EachPart([&](size_t k) { return Builder().CreateBitCast(a.v[k], Emitter::Current().doubles()); })};
}

#define HEDDLE_EMIT_BINARY(Type, Name, create)                                     \
  inline Type Name(Type a, Type b) {                                               \
    return {EachPart([&](size_t k) { return Builder().create(a.v[k], b.v[k]); })}; \
  }
HEDDLE_EMIT_BINARY(Vector, operator+, CreateFAdd)
HEDDLE_EMIT_BINARY(Vector, operator-, CreateFSub)
HEDDLE_EMIT_BINARY(Vector, operator*, CreateFMul)
HEDDLE_EMIT_BINARY(Vector, operator/, CreateFDiv)
HEDDLE_EMIT_BINARY(Integers, operator+, CreateAdd)
HEDDLE_EMIT_BINARY(Integers, operator-, CreateSub)
HEDDLE_EMIT_BINARY(Integers, operator&, CreateAnd)
HEDDLE_EMIT_BINARY(Integers, operator|, CreateOr)
HEDDLE_EMIT_BINARY(Integers, operator^, CreateXor)
HEDDLE_EMIT_BINARY(Mask, Both, CreateAnd)
HEDDLE_EMIT_BINARY(Mask, Either, CreateOr)
HEDDLE_EMIT_BINARY(Mask, Differ, CreateXor)
#undef HEDDLE_EMIT_BINARY

#define HEDDLE_EMIT_COMPARE(Name, create)                                          \
  inline Mask Name(Vector a, Vector b) {                                           \
    return {EachPart([&](size_t k) { return Builder().create(a.v[k], b.v[k]); })}; \
  }
HEDDLE_EMIT_COMPARE(Less, CreateFCmpOLT)
HEDDLE_EMIT_COMPARE(LessEqual, CreateFCmpOLE)
HEDDLE_EMIT_COMPARE(Greater, CreateFCmpOGT)
HEDDLE_EMIT_COMPARE(GreaterEqual, CreateFCmpOGE)
HEDDLE_EMIT_COMPARE(Equal, CreateFCmpOEQ)
HEDDLE_EMIT_COMPARE(NotEqual, CreateFCmpUNE)
HEDDLE_EMIT_COMPARE(Unordered, CreateFCmpUNO)
#undef HEDDLE_EMIT_COMPARE
inline Mask EqualIntegers(Integers a, Integers b) {
  return {EachPart([&](size_t k) { return Builder().CreateICmpEQ(a.v[k], b.v[k]); })};
}

inline Vector Select(Mask mask, Vector a, Vector b) {
  return {EachPart([&](size_t k) { return Builder().CreateSelect(mask.v[k], a.v[k], b.v[k]); })};
}
inline Vector KeepWhere(Mask mask, Vector a) { return Select(mask, a, Zero()); }
/// x86 min/max: b where a and b are unordered or equal.
inline Vector Min(Vector a, Vector b) { return Select(Less(a, b), a, b); }
inline Vector Max(Vector a, Vector b) { return Select(Greater(a, b), a, b); }

inline Vector And(Vector a, Vector b) { return OfBits(BitsOf(a) & BitsOf(b)); }
inline Vector Or(Vector a, Vector b) { return OfBits(BitsOf(a) | BitsOf(b)); }
inline Vector Xor(Vector a, Vector b) { return OfBits(BitsOf(a) ^ BitsOf(b)); }
inline Vector AndNot(Vector a, Vector b) { return OfBits((BitsOf(a) ^ BroadcastInteger(-1)) & BitsOf(b)); }
template <int kBits>
Integers ShiftLeft(Integers a) {
  return {EachPart([&](size_t k) { return Builder().CreateShl(a.v[k], kBits); })};
}
template <int kBits>
Integers ShiftRight(Integers a) {
  return {EachPart([&](size_t k) { return Builder().CreateLShr(a.v[k], kBits); })};
}

inline Vector EmitUnary(llvm::Intrinsic::ID id, Vector a) {
  Emitter& emitter = Emitter::Current();
  return {EachPart([&](size_t k) { return emitter.Intrinsic(id, emitter.doubles(), {a.v[k]}); })};
}
inline Vector Sqrt(Vector a) { return EmitUnary(llvm::Intrinsic::sqrt, a); }
inline Vector Floor(Vector a) { return EmitUnary(llvm::Intrinsic::floor, a); }
inline Vector Ceil(Vector a) { return EmitUnary(llvm::Intrinsic::ceil, a); }
inline Vector RoundEven(Vector a) { return EmitUnary(llvm::Intrinsic::roundeven, a); }
/// Rounded to a float, as a double.
Vector ToSingle(Vector a);

/// a * b + c, one rounding.
inline Vector Fma(Vector a, Vector b, Vector c) {
  Emitter& emitter = Emitter::Current();
  return {EachPart([&](size_t k) {
    return emitter.Intrinsic(llvm::Intrinsic::fma, emitter.doubles(), {a.v[k], b.v[k], c.v[k]});
  })};
}
inline Vector ChangeSign(Vector a) {
  return {EachPart([&](size_t k) { return Builder().CreateFNeg(a.v[k]); })};
}
/// a * b - c, one rounding.
inline Vector Fms(Vector a, Vector b, Vector c) { return Fma(a, b, ChangeSign(c)); }
/// c - a * b, one rounding.
inline Vector Fnma(Vector a, Vector b, Vector c) { return Fma(ChangeSign(a), b, c); }

/// Values of eight lanes and more are those of AVX-512.
inline bool HasExponents() { return Emitter::Current().register_lanes() >= 8; }
Vector ScaleExponent(Vector x, Vector k);
Vector ExponentOf(Vector x);
Vector MantissaOf(Vector x);
Vector FixSpecials(Vector result, Vector x, int64_t table);

/// True if that is known now: constants only.
inline bool All(Mask mask) {
  for (int k = 0; k < Emitter::Current().parts(); ++k) {
    const auto* const constant = llvm::dyn_cast<llvm::Constant>(mask.v[static_cast<size_t>(k)]);
    if (constant == nullptr || !constant->isAllOnesValue()) return false;
  }
  return true;
}

// Doubles as 64-bit integers, truncated as ops/simd/cellwise/integer_operators.h does it; NaN is 0, what does
// not fit saturates.
inline Integers Truncate(Vector x) {
  Emitter& emitter = Emitter::Current();
  const Vector sign = And(x, Broadcast(-0.0));
  const Vector magnitude = AndNot(Broadcast(-0.0), x);
  const Vector whole = Or(Floor(magnitude + Broadcast(0x1p-53)), sign);
  return {EachPart([&](size_t k) -> llvm::Value* {
    return emitter.builder.CreateIntrinsic(llvm::Intrinsic::fptosi_sat,
                                           {emitter.integers(), emitter.doubles()}, {whole.v[k]});
  })};
}
inline Vector ToDoubles(Integers a) {
  return {EachPart([&](size_t k) { return Builder().CreateSIToFP(a.v[k], Emitter::Current().doubles()); })};
}
inline Vector IntegerAnd(Vector a, Vector b) { return ToDoubles(Truncate(a) & Truncate(b)); }
inline Vector IntegerOr(Vector a, Vector b) { return ToDoubles(Truncate(a) | Truncate(b)); }
inline Vector IntegerExclusiveOr(Vector a, Vector b) { return ToDoubles(Truncate(a) ^ Truncate(b)); }
inline Vector IntegerShiftLeft(Vector a, Vector b) {
  const Integers x = Truncate(a), distance = Truncate(b) & BroadcastInteger(63);
  return ToDoubles({EachPart([&](size_t k) { return Builder().CreateShl(x.v[k], distance.v[k]); })});
}
inline Vector IntegerShiftRight(Vector a, Vector b) {
  const Integers x = Truncate(a), distance = Truncate(b) & BroadcastInteger(63);
  return ToDoubles({EachPart([&](size_t k) { return Builder().CreateAShr(x.v[k], distance.v[k]); })});
}

/// Eight cells through a kernel of the program (ops::UnaryKernel), called by the name `symbol`.
Vector CallKernel(const char* symbol, Vector a);
inline Vector Sin(Vector x) { return CallKernel("heddle_sine", x); }
inline Vector Cos(Vector x) { return CallKernel("heddle_cosine", x); }
inline Vector Tan(Vector x) { return CallKernel("heddle_tangent", x); }

// Memory. Lanes that a mask or a count leaves out read as +0.0 and are not touched.

/// Where cells are: doubles, or floats that become doubles when they are loaded and floats when they are
/// stored.
struct Cells {
  llvm::Value* at = nullptr;
  bool single = false;

  Cells() = default;
  Cells(llvm::Value* pointer, bool is_single = false)
      : at(pointer), single(is_single) {}  // NOLINT: implicit by design
  llvm::Type* type() const { return single ? Builder().getFloatTy() : Builder().getDoubleTy(); }
  llvm::Align align() const { return llvm::Align(single ? 4 : 8); }
};

Cells PointerTo(Cells cells, llvm::Value* index);  ///< &cells[index]
Vector Load(Cells cells);
Mask FirstLanes(llvm::Value* count);
Vector LoadWhere(Mask mask, Cells cells);
Vector BroadcastFrom(Cells cell);  ///< *cell in every lane.
void Store(Cells cells, Vector a);
/// Past the caches; aligned to eight cells.
void Stream(Cells cells, Vector a);
/// The first 1 to 7 lanes of each pair's vector to its pointer.
void StoreFirst(llvm::ArrayRef<std::pair<Cells, Vector>> stores, llvm::Value* count);
/// The same for vectors of one part of four lanes, where the count (1 to 4) is known; other lanes hold
/// anything.
Vector LoadFirstOfFour(Cells cells, int count);
void StoreFirstOfFour(Cells cells, Vector a, int count);
/// Lane k (a constant).
llvm::Value* Lane(Vector a, int k);
/// One part of eight lanes twice, as one of sixteen; and the eight lanes `half` (0 or 1) of one of sixteen.
llvm::Value* Twice(llvm::Value* part);
llvm::Value* HalfOf(llvm::Value* part, int half);

}  // namespace heddle::ops::emitted
