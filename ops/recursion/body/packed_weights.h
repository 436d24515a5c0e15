// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>

#include "core/values/matrix.h"
#include "ops/product/matmul_gemm.h"

namespace heddle::ops {

/// A dense matrix B that many small products have on the right, packed as they read it: for all batches, and
/// for all evaluations with the same matrix.
class PackedWeights {
 public:
  explicit PackedWeights(Matrix b);
  ~PackedWeights();
  /// C = A %*% B for `rows` rows of A and C, row-major, of B's element type, so many cells apart: the chain
  /// of docs/numerics.md, section 3, of floats that of section 9. On the threads of the calling arena, where
  /// that is expected to take less time.
  void Multiply(const void* a, int64_t a_row, int64_t rows, void* c, int64_t c_row,
                const std::atomic<bool>* cancelled) const;
  /// Whether this is the packed form of those very cells.
  bool IsOf(const Matrix& b) const;
  /// Whether a cell of A %*% B is one chain over all terms, however many rows A has: more than eight columns,
  /// and fewer terms than products are cut into panels at. Other products are for the operator.
  static bool Takes(Shape b);

 private:
  const Matrix given_;                   ///< Held, so that no other matrix takes its place in memory.
  std::unique_ptr<PackedRight> packed_;  ///< Of doubles, or
  std::unique_ptr<SinglePackedRight> singles_;
};

}  // namespace heddle::ops
