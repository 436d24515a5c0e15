// SPDX-License-Identifier: Apache-2.0
#include "bench/blas.h"

#include <dlfcn.h>

#include <Eigen/Core>
#include <cstdlib>

#include "ops/base/parallel.h"

namespace heddle::bench {
namespace {

constexpr int kRowMajor = 101, kNotTransposed = 111;

template <typename Cell, typename Product>
void Call(Product product, const Cell* a, const Cell* b, Cell* out, int64_t m, int64_t k, int64_t n) {
  const auto small = [](int64_t size) { return static_cast<int>(size); };
  product(kRowMajor, kNotTransposed, kNotTransposed, small(m), small(n), small(k), Cell{1}, a, small(k), b,
          small(n), Cell{0}, out, small(n));
}

}  // namespace

Blas::Blas(int threads) {
  setenv("OPENBLAS_THREAD_TIMEOUT", "4",
         0);  // Threads without work sleep at once instead of taking time from what is measured next.
  void* const library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);  // Stays open: its threads go on.
  if (library == nullptr) return;
  const auto set_threads = reinterpret_cast<void (*)(int)>(dlsym(library, "openblas_set_num_threads"));
  const auto multiply = reinterpret_cast<Product<double>>(dlsym(library, "cblas_dgemm"));
  const auto multiply_singles = reinterpret_cast<Product<float>>(dlsym(library, "cblas_sgemm"));
  if (set_threads == nullptr || multiply == nullptr || multiply_singles == nullptr) return;
  set_threads(threads);
  multiply_ = multiply;
  multiply_singles_ = multiply_singles;
}

void Blas::Multiply(const double* a, const double* b, double* out, int64_t m, int64_t k, int64_t n) const {
  Call(multiply_, a, b, out, m, k, n);
}
void Blas::Multiply(const float* a, const float* b, float* out, int64_t m, int64_t k, int64_t n) const {
  Call(multiply_singles_, a, b, out, m, k, n);
}

void EigenProduct(const double* a, const double* b, double* out, int64_t m, int64_t k, int64_t n) {
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Cells = Eigen::Map<const RowMajor>;
  ops::ParallelFor(m, std::max<int64_t>(1, m / 8), [=](int64_t begin, int64_t end) {
    Eigen::Map<RowMajor>(out + begin * n, end - begin, n).noalias() =
        Cells(a + begin * k, end - begin, k) * Cells(b, k, n);
  });
}

}  // namespace heddle::bench
