// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/base/kernel.h"
#include "ops/fused/program/tile_program.h"
#include "ops/fused/run/tile_steps.h"

namespace heddle::ops {

/// True for what RunLongRows does: rows of more columns than a column chunk whose results have a row for each
/// of the driver's, or whose aggregates are read inside.
bool RunsInPhases(const TileProgram& program);

/// How many rows all phases pass over before the next rows are taken, for rows of so many columns of which
/// each phase reads, saves or writes `full` values: few enough that the next phase finds them in the
/// last-level cache, but enough to give every thread work.
int64_t RowsOfGroup(int64_t rows, int64_t columns, int64_t full, int threads);

/// Runs it in the phase of the call (ops/base/kernel.h). All threads share the column chunks of a few rows at
/// a time, which the phases over them find in the cache.
Status RunLongRows(const TileProgram& program, const KernelCall& call, TileSteps& steps,
                   std::span<Value> results);

}  // namespace heddle::ops
