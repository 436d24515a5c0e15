// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compiler/parse/diagnostics.h"
#include "core/program.h"

namespace heddle::compiler {

/// Propagates types, sizes and known scalars through the whole program: into functions by the types and sizes
/// of each call, around loops until nothing changes (what changes from round to round becomes unknown). No
/// file is looked at.
///
/// Fills in node.info of every graph. A function that is called with different sizes keeps what all calls
/// agree on. Reports what cannot work: as an error where it is certain to happen when the script is run, as a
/// warning inside branches and loops and behind what may end the script before; there it is an error of the
/// run.
void PropagateShapes(Program* program, Diagnostics* diagnostics);

}  // namespace heddle::compiler
