// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Hand-written loops, one pass over the data: what a fused operator is compared with. Matrices are row-major;
// X is m x n. Call them inside ops::Arena::Execute. Reassociation is allowed; `out` is overwritten.
namespace heddle::bench {

double HandSumOfProducts(const double* x, const double* y, const double* z, int64_t count);
/// out = X*Y*Z, past the caches; out is 32-byte aligned.
void HandTripleProduct(const double* x, const double* y, const double* z, double* out, int64_t count);
double HandSumOfSigmoids(const double* x, const double* y, int64_t count);      ///< sum(sigmoid(2*X-1)*Y)
double HandSumOfExponentials(const double* x, const double* y, int64_t count);  ///< sum(exp(X)*log(Y+1))
/// out = t(X) %*% (X %*% v)
void HandChain(const double* x, const double* v, double* out, int64_t m, int64_t n);
/// out = t(X) %*% (Q - P[,1:4] * rowSums(Q)) with Q = P[,1:4] * (X %*% V); V is n x 4, P m x 5, out n x 4.
void HandMultinomial(const double* x, const double* v, const double* p, double* out, int64_t m, int64_t n);

/// A CSR matrix as it lies in memory.
struct HandCsr {
  const int64_t* offsets;
  const int32_t* columns;
  const double* values;
  int64_t rows, n;
};
double HandSparseSum(const HandCsr& x, const HandCsr& y,
                     const HandCsr& z);  ///< sum(X*Y*Z), patterns of their own
void HandSparseChain(const HandCsr& x, const double* v, double* out);
/// U is m x rank, V is n x rank.
double HandOuterLog(const HandCsr& x, const double* u, const double* v,
                    int64_t rank);  ///< sum(X*log(U%*%t(V)+1e-15))
void HandOuterRight(const HandCsr& x, const double* u, const double* v, int64_t rank,
                    double* out);  ///< ((X!=0)*(U%*%t(V)))%*%V
double HandOuterLoss(const HandCsr& x, const double* u, const double* v,
                     int64_t rank);  ///< sum((X!=0)*(X-U%*%t(V))^2)

}  // namespace heddle::bench
