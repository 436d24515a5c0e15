// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "core/values/matrix.h"

namespace heddle::ops {

/// The parameters of rand(), all known. The result is a function of these alone (docs/numerics.md, section
/// "rand").
struct RandRequest {
  enum class Distribution : uint8_t {
    kUniform,
    kNormal,
    kPoisson,
    kCounterUniform,  ///< From a counter-based stream (ops/generate/philox.h).
    kCounterNormal
  };

  int64_t rows = 1;
  int64_t columns = 1;
  double min = 0;
  double max = 1;
  double sparsity = 1;  ///< Probability that a cell is not empty.
  int64_t seed = 0;
  Distribution distribution = Distribution::kUniform;
  double lambda = 1;                             ///< Mean of kPoisson.
  const std::atomic<bool>* cancelled = nullptr;  ///< Polled between blocks; then kCancelled.
};

/// Rows [row_begin, row_end) of the random matrix, in the given format: the same cells whichever way the rows
/// are cut. Uniform and normal streams jump to the first row of a block, Poisson replays the block. Parallel
/// over blocks.
/// Cost: 2 ns a cell (uniform), 25 ns (normal).
Result<Matrix> RandomRows(const RandRequest& request, int64_t row_begin, int64_t row_end, Format format);

/// The same of columns [column_begin, column_end), all rows. A block of the definition of which only some
/// columns are wanted is drawn as a whole: at most two of each 1000 rows.
Result<Matrix> RandomColumns(const RandRequest& request, int64_t column_begin, int64_t column_end,
                             Format format);

/// True if a block of this size draws the gaps between its non-empty cells rather than one number for each
/// cell: where the reference engine stores the block as sparse rows, by its estimate of the memory of both.
bool DrawsGaps(int64_t rows, int64_t columns, double sparsity);

}  // namespace heddle::ops
