// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "ops/io/formats/file_format.h"

namespace heddle::ops {

/// As ResolveReadOptions, and where neither the node nor metadata say whether it is a matrix or a frame: a
/// frame where no matrix can be read from the file. A csv file is left as a matrix, whatever its cells are.
Result<ReadOptions> ResolveAnyType(const Node& node, const std::string& path, Files& files);

/// The schema of a frame is nowhere but in what its cells look like.
bool LacksSchema(const ReadOptions& read);

/// How many rows a piece has that would have `rows` for the sake of memory: at least a whole group of those
/// that are decoded together, so that none is decoded many times, unless that takes an eighth of the budget.
/// `bytes_of_row`: in memory.
int64_t RowsWithGroup(int64_t rows, const FileSummary& summary, double bytes_of_row);

}  // namespace heddle::ops
