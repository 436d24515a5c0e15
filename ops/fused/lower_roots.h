// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/fused/body_view.h"

namespace heddle::ops {

/// The reductions of a body whose roles are known, into program->roots with their panels and payloads; `view` is of `program`.
/// kUnimplemented where they do not fit together.
Status MakeRoots(const BodyView& view, TileProgram* program);

/// How many rows a tile has, once all steps are there.
void ChooseTileRows(TileProgram* program);

}  // namespace heddle::ops
