// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "compiler/codegen/module_abi.h"
#include "ops/base/cpu.h"
#include "ops/region/region.h"

namespace heddle::codegen {

/// The loaded libheddle_codegen.so. It stays loaded.
class CodeModule {
 public:
  /// Loads it on the first call, as OpenModule does (core/environment/modules.h). kUnavailable when it is not
  /// there or was made for another version. The outcome is remembered.
  static Result<const CodeModule*> Open();

  std::string_view identity() const { return functions_->identity; }
  Result<std::string> Compile(const std::string& region_text, ops::Cpu cpu, HeddleProduct product) const;
  /// Code that owns its memory, of an object that Compile made for this level.
  Result<std::shared_ptr<const ops::RegionCode>> Load(std::string_view object, ops::Cpu cpu) const;

 private:
  explicit CodeModule(const HeddleCodegenModule* functions) : functions_(functions) {}
  static Result<const CodeModule*> Find();
  const HeddleCodegenModule* functions_;
};

}  // namespace heddle::codegen
