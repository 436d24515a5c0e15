// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace heddle::codegen {

/// The function that is being written, and where. One at a time per thread: the functions of
/// emitted_vector.h, which have the signatures of ops/simd/vector.h, find it by Current().
class Emitter {
 public:
  /// `register_lanes`: doubles of one vector register, 4 or 8; eight lanes are 8 / register_lanes values.
  Emitter(llvm::Function* function, int register_lanes);
  ~Emitter();
  Emitter(const Emitter&) = delete;
  Emitter& operator=(const Emitter&) = delete;

  static Emitter& Current();

  llvm::IRBuilder<> builder;

  llvm::Function* function() const { return function_; }
  int register_lanes() const { return register_lanes_; }
  int parts() const { return parts_; }
  /// Vectors are `parts` values of `register_lanes` doubles from now on. 16 of them are two registers of
  /// AVX-512, and one where they are floats.
  void SetShape(int register_lanes, int parts);
  llvm::FixedVectorType* doubles() const { return doubles_; }
  llvm::FixedVectorType* integers() const { return integers_; }
  llvm::BasicBlock* NewBlock(const char* name);
  /// Memory of the function's frame, reserved in its first block.
  llvm::AllocaInst* Reserve(llvm::Type* type, const char* name);
  llvm::Constant* Integer(int64_t x) { return builder.getInt64(static_cast<uint64_t>(x)); }
  /// An intrinsic on `type`.
  llvm::Value* Intrinsic(llvm::Intrinsic::ID id, llvm::Type* type, llvm::ArrayRef<llvm::Value*> arguments);

 private:
  llvm::Function* function_;
  int register_lanes_ = 0;
  int parts_ = 0;
  llvm::FixedVectorType* doubles_ = nullptr;
  llvm::FixedVectorType* integers_ = nullptr;
};

}  // namespace heddle::codegen
