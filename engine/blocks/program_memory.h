// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
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

/// The peak of that text in bytes, with what operators work with beside their values: what a session needs of
/// the memory of a rank. nullopt where only a run tells: sizes that are not known, sparse matrices, frames,
/// lists, parfor, functions that are called twice or call themselves.
std::optional<int64_t> MemoryOfProgram(const Program& program, const SessionOptions& options,
                                       ops::Files* files);

}  // namespace heddle::engine
