// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace heddle::compiler {

/// Native builtins that are part of DML but that Heddle does not run yet.
bool IsOtherNative(std::string_view name);
/// The functions of DML's library, each a script of its own that a library folder has.
bool IsLibraryFunction(std::string_view name);

}  // namespace heddle::compiler
