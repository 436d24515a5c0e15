// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace heddle::bench {

/// OpenBLAS of this machine (libopenblas.so.0), opened at run time: a peer, not a part of what we build.
class Blas {
 public:
  /// `threads`: that it may use from now on.
  explicit Blas(int threads);
  bool present() const { return multiply_ != nullptr; }
  /// out = A %*% B, row-major, A is m x k, B is k x n. Present only.
  void Multiply(const double* a, const double* b, double* out, int64_t m, int64_t k, int64_t n) const;
  void Multiply(const float* a, const float* b, float* out, int64_t m, int64_t k, int64_t n) const;

 private:
  // cblas_dgemm and cblas_sgemm with their enumerations as numbers.
  template <typename Cell>
  using Product = void (*)(int, int, int, int, int, int, Cell, const Cell*, int, const Cell*, int, Cell,
                           Cell*, int);
  Product<double> multiply_ = nullptr;
  Product<float> multiply_singles_ = nullptr;
};

/// The same by Eigen, inside ops::Arena::Execute.
void EigenProduct(const double* a, const double* b, double* out, int64_t m, int64_t k, int64_t n);

}  // namespace heddle::bench
