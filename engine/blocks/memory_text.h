// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "core/programs/plan.h"

namespace heddle::ops {
class Files;
}

namespace heddle::engine {

/// Line by line of the script, what of the operators of a plan streams, in panels of how many rows, what is
/// kept in memory or spilled, and what is whole; and by pass what is read of rows that are elsewhere. The
/// part of `explain --level memory` that is about a plan; lines end with line ends. `files` tell which rows
/// are costly to make again.
std::string LinesOfMemory(const Plan& plan, ops::Files* files);

/// Whether the rows of what a node assigns are made again whenever they are read, and never written.
bool IsRemade(const Plan& plan, NodeId assign, ops::Files* files);

/// Bytes that the plan may write to spill files on a rank, at most: rows that it collects, and those that are
/// costly to make again.
int64_t MostSpilled(const Plan& plan, int32_t rank, ops::Files* files);

}  // namespace heddle::engine
