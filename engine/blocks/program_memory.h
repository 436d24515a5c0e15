// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/programs/program.h"
#include "core/status.h"
#include "engine/variables/session_options.h"

namespace heddle::ops {
class Files;
}

namespace heddle::engine {

/// The text of `explain --level memory`: what a program takes of the memory of each rank and of its disk,
/// block by block in the order of the text, from the plans that a session of these options would make.
/// Nothing runs. Sizes are those that the program and its files tell; a block whose sizes only a run tells is
/// told as far as it goes. A loop or a branch counts as if it ran once, a function as at its first call.
///
/// Needs: shapes propagated. Errors: those of the script, with their places; what does not fit is told in the
/// text.
Result<std::string> ExplainMemory(const Program& program, const SessionOptions& options, ops::Files* files);

}  // namespace heddle::engine
