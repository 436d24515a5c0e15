// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/status.h"
#include "core/values/shape.h"

namespace heddle {

class Value;

/// A matrix or frame whose rows are not in memory, or not all of them: they are in panels that are kept, in a
/// spill file, or in an input file. A plan reads it range by range (docs/streaming.md). Immutable: rows of
/// the same range are the same bytes whenever they are asked for.
class RowPanels {
 public:
  virtual ~RowPanels() = default;
  virtual Shape shape() const = 0;
  virtual bool IsFrame() const = 0;
  /// Bytes of memory that it holds now; what is in files is not in it.
  virtual int64_t bytes() const = 0;
  /// Rows [begin, end), 0 <= begin <= end <= shape().rows: a matrix or frame in memory. Thread-safe.
  /// kResourceExhausted when they do not fit; kDataLoss when a file has changed or cannot be read.
  virtual Result<Value> Rows(int64_t begin, int64_t end) const = 0;
};

}  // namespace heddle
