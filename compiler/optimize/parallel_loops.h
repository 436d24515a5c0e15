// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "core/programs/program.h"

namespace heddle::compiler {

/// Whether these blocks, or functions that they may call, hold a node of this operator.
bool MayRun(const std::vector<Block>& blocks, const Program& program, std::string_view op);

/// Parfors whose iterations write files, functions that they call included, run them in order: a file that
/// one writes may be one that another writes or reads.
void OrderLoopsThatWrite(Program* program);

}  // namespace heddle::compiler
