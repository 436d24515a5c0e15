// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

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

/// kUsage, with all names and the nearest one, unless `stage` is one that Explain knows or one of `others`.
Status CheckStage(std::string_view stage, std::span<const std::string_view> others = {});

/// What one stage made of a script: "ast", a name of Stages(), "program" (after the last stage) or "all"
/// (everything, each under a heading). Errors: those of CompileScript and CheckStage.
Result<std::string> Explain(std::string text, const CompileOptions& options, std::string_view stage,
                            Diagnostics* diagnostics);

}  // namespace heddle::compiler
