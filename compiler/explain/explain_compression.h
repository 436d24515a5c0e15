// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>

#include "compiler/explain/explain_fusion.h"
#include "core/programs/program.h"

namespace heddle::compiler {

/// Calls of compress() in a script, also those that the passes remove: by line and column, the functions that
/// they stand in ("": none).
using WrittenCompressions = std::map<std::pair<int32_t, int32_t>, std::string>;
WrittenCompressions FindCompressions(const Program& program);

/// The text of `explain --level compression`: for each compress() of the script, and each matrix that a loop
/// reads and does not change, its size, what reads it and how, and whether it is stored by groups of columns;
/// where its cells follow from the text and the files that are there, also the groups and bytes, which are
/// computed for that. Nothing is written.
///
/// Needs: shapes propagated. `written`: of the program before the passes.
std::string ExplainCompression(const Program& program, const WrittenCompressions& written,
                               const PlanningOptions& planning);

}  // namespace heddle::compiler
