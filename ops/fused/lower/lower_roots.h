// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/fused/program/body_view.h"

namespace heddle::ops {

/// The reductions of a body whose roles are known, into program->roots with their panels and payloads; `view`
/// is of `program`. kUnimplemented where they do not fit together.
Status MakeRoots(const BodyView& view, TileProgram* program);

/// The columns of rows that are longer than a column chunk, if nothing looks at more than one cell of them at
/// a time; or 0. After MakeRoots and CanWalkEntries.
int64_t CutColumns(const BodyView& view);

/// kUnimplemented if rows are too long for what is asked of them. After CutColumns.
Status CheckLongRows(const TileProgram& program);
/// Of operators of several results or phases: a chunk of a row has the payloads of all but sums of columns,
/// whose leaves are arrays of their own (TileSteps::SumColumnsIn).
void PlacePayloadsOfLongRows(TileProgram* program);

/// How rows are read: what products of rows of an input fetch of the next tile (docs/fusion.md, section 3),
/// once all steps are there, what regions fetch, and whether they read by halves. Where the rows are
/// multiplied first and then the transposed rows, by several columns, each of the two fetches a half.
void ChooseReads(TileProgram* program);

/// How many rows a tile has, after ChooseReads.
void ChooseTileRows(TileProgram* program);

}  // namespace heddle::ops
