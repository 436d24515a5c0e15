// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/module/place_constants.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <array>

namespace heddle::codegen {
namespace {

bool IsArithmetic(const llvm::Instruction& instruction) {
  if (const auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction))
    return call->getIntrinsicID() == llvm::Intrinsic::fma;
  switch (instruction.getOpcode()) {
    case llvm::Instruction::FAdd:
    case llvm::Instruction::FSub:
    case llvm::Instruction::FMul:
    case llvm::Instruction::FDiv: return true;
    default: return false;
  }
}

/// A non-zero number in all lanes.
bool IsPlaceable(const llvm::Value* value) {
  const auto* const constant = llvm::dyn_cast<llvm::ConstantDataVector>(value);
  return constant != nullptr && constant->isSplat() && constant->getElementType()->isDoubleTy() &&
         !constant->isNullValue();
}

/// The copies of one constant, and which is next: code for the lower and the upper lanes takes turns.
struct Copies {
  std::array<llvm::GlobalVariable*, 2> places = {};
  unsigned next = 0;
};

}  // namespace

void PlaceConstants(llvm::Function& function) {
  llvm::DenseMap<llvm::Constant*, Copies> table;
  for (llvm::BasicBlock& block : function) {
    for (llvm::Instruction& instruction : block) {
      if (!IsArithmetic(instruction)) continue;
      for (llvm::Use& use : instruction.operands()) {
        if (!IsPlaceable(use.get())) continue;
        auto* const constant = llvm::cast<llvm::Constant>(use.get());
        Copies& copies = table[constant];
        llvm::GlobalVariable*& place = copies.places[copies.next];
        copies.next ^= 1u;
        if (place == nullptr) {
          place = new llvm::GlobalVariable(*function.getParent(), constant->getType(), true,
                                           llvm::GlobalValue::InternalLinkage, constant, "constant");
          place->setAlignment(llvm::Align(32));
        }
        llvm::IRBuilder<> builder(&instruction);
        use.set(builder.CreateAlignedLoad(constant->getType(), place, llvm::Align(32)));
      }
    }
  }
}

}  // namespace heddle::codegen
