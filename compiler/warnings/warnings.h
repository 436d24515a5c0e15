// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "compiler/build/build.h"
#include "compiler/parse/ast.h"
#include "compiler/parse/diagnostics.h"

namespace heddle::compiler {

/// Warns of what is legal but cannot be what its author wants, in the main script and the files that it
/// sources, not in the library. Each kind of warning is one that no script of SystemDS gets without reason:
/// what is only unusual stays untold. Of a script that goes on (`continuation`, else nullptr) it is about the
/// statements that are built, and the functions of the main script where they are checked. `arguments`: those
/// of the command line (CompileOptions::arguments).
///
/// Needs: syntax trees without errors.
void WarnOfMistakes(const ScriptSet& scripts, const std::map<std::string, std::string>& arguments,
                    const Continuation* continuation, Diagnostics* diagnostics);

}  // namespace heddle::compiler
