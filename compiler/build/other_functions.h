// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace heddle::compiler {

/// Of a native builtin that is part of DML but that Heddle does not run yet what to write instead (may be
/// empty); nullopt of all other names.
std::optional<std::string_view> InsteadOfNative(std::string_view name);
/// Functions of SystemDS's library that Heddle's own (library/library_files.h) does not have: scripts may
/// call them, and a library folder may have them.
bool IsElsewhere(std::string_view name);
std::span<const std::string_view> FunctionsElsewhere();  ///< Sorted.
/// Where the file of such a function comes from, for messages.
std::string WhereLibraryIs(std::string_view name);

}  // namespace heddle::compiler
