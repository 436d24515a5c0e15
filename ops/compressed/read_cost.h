// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/values/column_groups.h"

// What it costs to read a matrix in products, which look every cell up: bytes from memory, and time as bytes
// that memory would give meanwhile. Aggregates and functions of cells cost less (docs/compression.md).
namespace heddle::ops {

/// A group of columns, as far as its cost goes.
struct GroupSize {
  Encoding encoding = Encoding::kUncompressed;
  double rows = 0, columns = 0;
  double tuples = 0;
  double exceptions = 0;  ///< Of kDefault; runs of kRuns.
  double bytes = 0;
};

/// Of a group inside of a compressed matrix.
double ReadCost(const GroupSize& group);
/// Of all groups.
double ReadCost(const ColumnGroups& groups);
/// Of a matrix that is not compressed, of so many bytes and stored cells.
double PlainReadCost(double bytes, double stored, bool is_sparse);

}  // namespace heddle::ops
