// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/Function.h>

namespace heddle::codegen {

/// Moves the constants of vector arithmetic to memory, one copy for the lower and one for the upper lanes of
/// eight. For AVX2 code: its arithmetic takes an operand from memory for nothing, whereas LLVM fetches each
/// constant by a broadcast of its own, a seventh of all instructions of exp(x) * log(y). AVX-512 has
/// broadcasting operands.
///
/// Changes no result. Run it last: passes would see through it.
void PlaceConstants(llvm::Function& function);

}  // namespace heddle::codegen
