// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "compiler/codegen/module_abi.h"
#include "core/status.h"

namespace heddle::codegen {

/// Code in memory. Destroying it frees the memory.
class LinkedObject {
 public:
  virtual ~LinkedObject() = default;
  virtual void* entry_point() const = 0;
};

/// Links an object of CompileRegion into memory by LLVM ORC. Pages are written first and made executable
/// afterwards, never both. Thread-safe.
Result<std::unique_ptr<LinkedObject>> LinkObject(std::string_view object,
                                                 std::span<const HeddleSymbol> symbols);

}  // namespace heddle::codegen
