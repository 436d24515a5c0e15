// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/values/shape.h"

namespace heddle::ops {

class BodyProgram;  // ops/recursion/body/body_program.h

/// Handing work to another thread and waiting for it to be done.
constexpr double kHandOverMicroseconds = 6;

/// A product is shared out over threads where it is expected to take so long.
constexpr double kMicrosecondsWorthThreads = 20;

/// Microseconds that one core is expected to take for `rows` rows times B: bound by multiply-adds, or by the
/// bytes of B where few rows share them.
double ProductMicroseconds(int64_t rows, Shape b, int64_t cell_bytes);

/// How many rows of a batch go through the steps of a body together: as many as fit into the second-level
/// cache with their values, but enough for products to be fast, and for each thread to have some.
int64_t RowsAtOnce(int64_t rows, int64_t row_bytes, int threads);

/// How long a batch is expected to take: the model by which parts of an evaluation are chosen
/// (tree_parts.h). No result depends on it.
class BodyTime {
 public:
  explicit BodyTime(const BodyProgram& program);
  /// Microseconds of a batch of so many nodes on so many threads.
  double Of(int64_t rows, int threads) const;

 private:
  struct Product {
    int64_t rows_of_node;
    Shape b;
    int64_t cell_bytes;
  };
  double OfRows(int64_t rows, int threads) const;

  std::vector<Product> products_;
  int64_t row_bytes_;
  double of_batch_ = 0, of_row_ = 0;  // Microseconds of everything but products.
};

}  // namespace heddle::ops
