// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "compiler/editor/script_view.h"

namespace heddle::compiler {

/// A function, a namespace or a variable of the main script.
struct OutlineItem {
  enum class Kind : uint8_t { kFunction, kNameSpace, kVariable };
  Kind kind = Kind::kFunction;
  std::string name;
  std::string detail;      ///< "(X, y, icpt)", a path, "".
  SourceRange range;       ///< All of it.
  SourceRange name_range;  ///< Within it.
};

/// What a script defines, in the order of the text; variables where they are assigned first.
std::vector<OutlineItem> OutlineOf(const ScriptView& script);

/// Lines that may be folded into their first one, counting from 0: blocks in braces, comments, lists of
/// arguments.
struct Fold {
  int64_t first = 0;
  int64_t last = 0;
  bool is_comment = false;

  auto operator<=>(const Fold&) const = default;
};
std::vector<Fold> FoldsIn(const ScriptView& script);

}  // namespace heddle::compiler
