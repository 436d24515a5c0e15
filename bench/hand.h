// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Plain C++ loops, one pass over the data: what an operator is compared with. x is m x n row-major.
namespace heddle::bench {

void HandMultiply(const double* x, const double* y, double* out, int64_t count, int threads);
double HandSum(const double* x, int64_t count, int threads);
void HandRowSums(const double* x, double* out, int64_t m, int64_t n, int threads);
void HandColSums(const double* x, double* out, int64_t m, int64_t n, int threads);
/// out = X v
void HandProduct(const double* x, const double* v, double* out, int64_t m, int64_t n, int threads);
/// out = t(X) w
void HandTransposedProduct(const double* x, const double* w, double* out, int64_t m, int64_t n, int threads);

}  // namespace heddle::bench
