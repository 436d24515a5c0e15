// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "compiler/compile.h"
#include "compiler/explain/explain_fusion.h"

namespace heddle::compiler {

/// A graph as people read it: one operator a line, literals and variables written where they are used.
///
///     %1 = rand rows=1000 cols=10 seed=7 : 1000x10
///     %2 = sum(%1)                       : double
///     print(%2)
std::string ExplainGraph(const Graph& graph, int indent = 0);

/// A whole program: the main script, then the functions it reaches; control flow by indentation.
std::string ExplainProgram(const Program& program);

/// What the compiler makes of a script; nothing is run. Levels are "ast", a name of Stages(), "program"
/// (after the last stage), "recursion", "structure" (the same and the steps of each structure program), "all"
/// (every stage, each under a heading), and those of kFusionLevels, which alone look at `planning`.
///
/// Errors: those of CompileScript; kUsage, with all names and the nearest one, for a level that does not
/// exist.
Result<std::string> Explain(std::string text, const CompileOptions& options, std::string_view level,
                            Diagnostics* diagnostics, const PlanningOptions& planning = {});

}  // namespace heddle::compiler
