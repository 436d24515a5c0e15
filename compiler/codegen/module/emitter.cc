// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/module/emitter.h"

#include <llvm/IR/Intrinsics.h>

namespace heddle::codegen {
namespace {
thread_local Emitter* current = nullptr;
}

Emitter::Emitter(llvm::Function* function, int register_lanes)
    : builder(llvm::BasicBlock::Create(function->getContext(), "entry", function)), function_(function) {
  SetShape(register_lanes, 8 / register_lanes);
  current = this;
}

Emitter::~Emitter() { current = nullptr; }

void Emitter::SetShape(int register_lanes, int parts) {
  register_lanes_ = register_lanes;
  parts_ = parts;
  doubles_ = llvm::FixedVectorType::get(builder.getDoubleTy(), static_cast<unsigned>(register_lanes));
  integers_ = llvm::FixedVectorType::get(builder.getInt64Ty(), static_cast<unsigned>(register_lanes));
}

Emitter& Emitter::Current() { return *current; }

llvm::BasicBlock* Emitter::NewBlock(const char* name) {
  return llvm::BasicBlock::Create(function_->getContext(), name, function_);
}

llvm::AllocaInst* Emitter::Reserve(llvm::Type* type, const char* name) {
  llvm::BasicBlock& entry = function_->getEntryBlock();
  llvm::IRBuilder<> at_entry(&entry, entry.begin());
  return at_entry.CreateAlloca(type, nullptr, name);
}

llvm::Value* Emitter::Intrinsic(llvm::Intrinsic::ID id, llvm::Type* type,
                                llvm::ArrayRef<llvm::Value*> arguments) {
  llvm::Function* const callee = llvm::Intrinsic::getDeclaration(function_->getParent(), id, {type});
  return builder.CreateCall(callee, arguments);
}

}  // namespace heddle::codegen
