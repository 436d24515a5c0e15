// SPDX-License-Identifier: Apache-2.0
// Division of many cells by one number: by its reciprocal, and to the last bit. A division of eight doubles
// keeps the processor busy for 10 to 16 cycles, what follows for 5.
//
// With y = RN(1 / b): q0 = RN(a * y) is within 1.5 ulp of a / b, and one correction q1 = RN(q0 + y * RN(a - b
// * q0)) is within one ulp. Then a - b * q1 is exact, and RN(q1 + y * (a - b * q1)) = RN(a / b) (Markstein,
// "Computation of elementary functions on the IBM RISC System/6000 processor", 1990; Muller et al., "Handbook
// of Floating-Point Arithmetic", section 4.7), as long as nothing overflows or underflows on the way. Where
// it might, and for zeros, infinities and NaN, whole registers are divided as ever.
#include <cmath>
#include <limits>

#include "compiler/codegen/module/lowering.h"

namespace heddle::codegen {

using namespace ops::emitted;
using ops::RegionNode;
using ops::RegionOp;

namespace {

// Numbers whose quotients and remainders are normal: remainders are 2^-53 of their dividends and less.
constexpr double kLeastCell = 0x1p-600, kMostCell = 0x1p600;
constexpr double kLeastDivisor = 0x1p-300, kMostDivisor = 0x1p300;

Vector SizeOf(Vector a) { return AndNot(Broadcast(-0.0), a); }

// One bit: whether all lanes are true.
llvm::Value* AllLanes(Mask mask) {
  Emitter& emitter = Emitter::Current();
  llvm::Value* all = mask.v[0];
  for (int k = 1; k < emitter.parts(); ++k) all = Builder().CreateAnd(all, mask.v[static_cast<size_t>(k)]);
  llvm::Type* const bits = Builder().getIntNTy(static_cast<unsigned>(emitter.register_lanes()));
  return Builder().CreateICmpEQ(Builder().CreateBitCast(all, bits), llvm::Constant::getAllOnesValue(bits));
}

}  // namespace

bool Lowering::DividesByOneNumber(size_t i) const {
  const RegionNode& node = region_.nodes[i];
  if (region_.columns > 0 || node.op != RegionOp::kBinary || node.binary != ops::BinaryCode::kDivide ||
      node.skips_a || node.skips_b || rates_[i] != Rate::kPerCell)
    return false;
  const auto b = static_cast<size_t>(node.b);
  if (rates_[b] == Rate::kPerCell) return false;
  // LLVM multiplies by the reciprocal of a power of two.
  int exponent = 0;
  return region_.nodes[b].op != RegionOp::kLiteral ||
         std::fabs(std::frexp(region_.nodes[b].literal, &exponent)) != 0.5;
}

void Lowering::FindDivisors(Rate rate) {
  for (size_t i = 0; i < region_.nodes.size(); ++i) {
    const int node = region_.nodes[i].b;
    if (!DividesByOneNumber(i) || rates_[static_cast<size_t>(node)] != rate) continue;
    const Vector b = *values_[static_cast<size_t>(node)], size = SizeOf(b);
    const Mask is_moderate =
        Both(GreaterEqual(size, Broadcast(kLeastDivisor)), LessEqual(size, Broadcast(kMostDivisor)));
    divisors_[node] = {Broadcast(1.0) / b, Select(is_moderate, Broadcast(kLeastCell),
                                                  Broadcast(std::numeric_limits<double>::infinity()))};
  }
}

Vector Lowering::DivideCells(Vector a, Vector b, const Divisor& divisor) {
  const Vector y = divisor.reciprocal;
  Vector q = a * y;
  q = Fma(Fnma(b, q, a), y, q);
  q = Fma(Fnma(b, q, a), y, q);
  const Vector size = SizeOf(a);
  llvm::Value* const is_exact =
      AllLanes(Both(GreaterEqual(size, divisor.least), LessEqual(size, Broadcast(kMostCell))));
  llvm::BasicBlock* const quick = b_.GetInsertBlock();
  llvm::BasicBlock* const slow = emitter_.NewBlock("divide");
  llvm::BasicBlock* const after = emitter_.NewBlock("divided");
  b_.CreateCondBr(is_exact, after, slow);
  b_.SetInsertPoint(slow);
  const Vector quotient = a / b;
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  return {EachPart([&](size_t k) {
    llvm::PHINode* const result = b_.CreatePHI(emitter_.doubles(), 2);
    result->addIncoming(q.v[k], quick);
    result->addIncoming(quotient.v[k], slow);
    return result;
  })};
}

}  // namespace heddle::codegen
