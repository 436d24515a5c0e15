// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>

#include "core/values/matrix.h"
#include "ops/product/matmul_gemm.h"

namespace heddle::ops {

/// A dense matrix B that many small products have on the right, as they read it: packed once for all batches,
/// and for all evaluations with the same matrix.
class PackedWeights {
 public:
  explicit PackedWeights(Matrix b);
  ~PackedWeights();
  /// A %*% B, A dense and of B's element type: the chain of docs/numerics.md, section 3, of floats that of
  /// section 9. On the threads of the calling arena.
  Result<Matrix> Multiply(const Matrix& a, const std::atomic<bool>* cancelled) const;
  /// Whether this is the packed form of those very cells.
  bool IsOf(const Matrix& b) const;
  /// Whether products with B are the plain chain for any number of rows of A: more than eight columns, and
  /// fewer terms than a chain is cut at. Others are for the operator.
  static bool Takes(const Matrix& b);

 private:
  const Matrix given_;                   ///< Kept: no other matrix takes its place in memory.
  std::unique_ptr<PackedRight> packed_;  ///< Of doubles, or
  std::unique_ptr<SinglePackedRight> singles_;
};

/// The last of them. Thread-safe, where threads run in arenas of their own: who packs must not take up
/// another evaluation meanwhile.
class WeightCache {
 public:
  std::shared_ptr<const PackedWeights> Of(const Matrix& b);

 private:
  std::mutex mutex_;
  std::list<std::shared_ptr<const PackedWeights>> kept_;  // The last used first.
};

}  // namespace heddle::ops
