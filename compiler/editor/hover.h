// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "compiler/editor/scripts.h"
#include "compiler/editor/value_infos.h"

namespace heddle::compiler {

/// What is told about a name.
struct Hover {
  SourceRange range;
  std::string code;  ///< Lines of DML, or nearly: "X: matrix 1000x10".
  std::string text;  ///< Plain lines below it; may be empty.
};

struct HoverOptions {
  /// Values of fewer bytes stay on one worker.
  int64_t min_distributed_bytes = 0;
  /// Whether the values are of this very text; else they are of the last one without errors, and the answer
  /// says so.
  bool is_current = true;
};

/// Of the name at a place; nullopt: there is nothing to say.
std::optional<Hover> HoverAt(const ScriptViewPointer& script, const Place& place, const ValueInfos& values,
                             const HoverOptions& options, Scripts* scripts);

}  // namespace heddle::compiler
