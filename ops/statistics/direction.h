// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "core/programs/graph.h"

namespace heddle::ops {

/// What unique() and countDistinct() look at together: all cells, those of a row, or those of a column.
enum class Direction : uint8_t { kAll, kRows, kColumns };

/// The attribute dir: "rc" (also when left out), "r" or "c", in letters of any case.
inline Result<Direction> DirectionOf(const Node& node) {
  const Scalar* dir = node.FindAttribute("dir");
  if (dir == nullptr) return Direction::kAll;
  const std::string text = dir->ToText();
  if (text == "rc" || text == "RC") return Direction::kAll;
  if (text == "r" || text == "R") return Direction::kRows;
  if (text == "c" || text == "C") return Direction::kColumns;
  return InvalidArgument("{}: unknown direction dir=\"{}\"", node.op, text)
      .WithNote("it is \"r\" (each row), \"c\" (each column) or \"rc\" (all cells)");
}

}  // namespace heddle::ops
