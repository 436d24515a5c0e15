// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::compiler {

/// A file of compiler/help/text/, which is part of the compiler.
struct HelpText {
  std::string_view path;
  std::string_view text;
};
/// All of them (text_table.cc, made by the build).
std::span<const HelpText> HelpTexts();

/// What compiler/help/text/builtins.txt says of a builtin or a statement of the language.
struct BuiltinHelp {
  std::string name;                      ///< "order"
  std::string room;                      ///< "construction and shape"
  std::string usage;                     ///< "M = order(target=X, by=1)"
  std::string summary;                   ///< One line without a full stop.
  std::vector<std::string> description;  ///< Further lines.
};

/// In the order of the file, by room.
std::span<const BuiltinHelp> BuiltinHelps();
/// nullptr for a name that none of them has; aliases of builtins are none.
const BuiltinHelp* FindBuiltinHelp(std::string_view name);
/// A screen of text.
std::string Render(const BuiltinHelp& help);

}  // namespace heddle::compiler
