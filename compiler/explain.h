// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "compiler/compile.h"

namespace heddle::compiler {

/// A graph as people read it: one operator a line, literals and variables written where they are used.
///
///     %1 = rand rows=1000 cols=10 seed=7 : 1000x10
///     %2 = sum(%1)                       : double
///     print(%2)
std::string ExplainGraph(const Graph& graph, int indent = 0);

/// A whole program: the main script, then the functions it reaches; control flow by indentation.
std::string ExplainProgram(const Program& program);

/// What one stage made of a script: "ast", a name of Stages(), "program" (after the last stage) or "all"
/// (everything, each under a heading). Errors: those of CompileScript; kUsage for an unknown stage, with the
/// nearest name.
Result<std::string> Explain(std::string text, const CompileOptions& options, std::string_view stage,
                            Diagnostics* diagnostics);

}  // namespace heddle::compiler
