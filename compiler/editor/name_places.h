// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "compiler/editor/scripts.h"

namespace heddle::compiler {

/// A place in a script.
struct NamePlace {
  ScriptViewPointer script;
  SourceRange range;
  bool is_definition = false;
};

/// Where the name at a place gets its value, or is defined: the assignments of a variable that reach it, the
/// function that is called (also in another file), the parameter of an argument, the file of a namespace.
std::vector<NamePlace> DefinitionsAt(const ScriptViewPointer& script, const Place& place, Scripts* scripts);

/// All places of what the name at a place means, in its script and in `others` (functions alone are known
/// there), by file and place. Empty when there is no name.
std::vector<NamePlace> ReferencesAt(const ScriptViewPointer& script, const Place& place,
                                    const std::vector<ScriptViewPointer>& others, Scripts* scripts);

/// Whether the name at a place can be changed, and to `new_name` where that is not "". The errors say why
/// not: kInvalidArgument for what is no name or would mean something else, kNotFound where there is no name,
/// kFailedPrecondition for names that are not of these scripts.
Status CheckRename(const ScriptViewPointer& script, const Place& place, const std::string& new_name,
                   Scripts* scripts);

}  // namespace heddle::compiler
