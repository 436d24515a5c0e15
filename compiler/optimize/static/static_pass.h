// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "compiler/parse/diagnostics.h"
#include "core/programs/program.h"

namespace heddle::ops {
class Files;
}

namespace heddle::compiler {

/// What the "variable" nodes of a program are worth on every way to them, by block and node; nullopt where
/// that differs or is not known.
using LiveInValues = std::map<std::pair<int32_t, NodeId>, std::optional<Scalar>>;

/// Propagates types, sizes and known scalars through the whole program: into functions by the types and sizes
/// of each call, around loops until nothing changes (what changes from round to round becomes unknown). No
/// file is looked at but where `files` is given, which tells `read` the size of its file, unless the script
/// may have written the file before.
///
/// Fills in node.info of every graph. A function that is called with different sizes keeps what all calls
/// agree on. Reports what cannot work: as an error where it is certain to happen when the script is run, as a
/// warning inside branches and loops and behind what may end the script before; there it is an error of the
/// run.
void PropagateShapes(Program* program, Diagnostics* diagnostics, ops::Files* files = nullptr);

/// The values of scalars at the entry of every block, found in the same way. The program stays as it is.
LiveInValues FindLiveInValues(Program* program);

}  // namespace heddle::compiler
