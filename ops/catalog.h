// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "ops/base/operator.h"

// The operators, one line each in ops/catalog.cc; each file declares its own here. Names and inputs:
// docs/architecture.md.
namespace heddle::ops {

std::span<const Operator>
ElementwiseOperators();  ///< ops/elementwise/cell_operators.cc: binary, unary, ifelse, pmin, pmax
std::span<const Operator> AggregateOperators();   ///< ops/aggregate/aggregate.cc: full, row, column
std::span<const Operator> CumulativeOperators();  ///< ops/elementwise/cumulative.cc
std::span<const Operator> MatmulOperators();      ///< ops/product/matmul.cc: %*%, t%*%
std::span<const Operator>
SampledProductOperators();  ///< ops/product/sampled_product.cc: formed by the compiler
std::span<const Operator>
ReorganizeOperators();  ///< ops/reorganize/reorganize.cc: t, cbind, rbind, diag, rev, reshape
std::span<const Operator> IndexOperators();     ///< ops/index/index.cc: index, indexAssign
std::span<const Operator> GenerateOperators();  ///< ops/generate/generate.cc: matrix, rand, seq, time
std::span<const Operator> SelectOperators();    ///< ops/select/select.cc: table, removeEmpty, order, replace
std::span<const Operator> SolveOperators();     ///< ops/solve/solve.cc: solve, inv, cholesky, det
std::span<const Operator> DistributionOperators();   ///< ops/distribution/distribution_operators.cc
std::span<const Operator> CountDistinctOperators();  ///< ops/statistics/count_distinct.cc
std::span<const Operator> FourierOperators();        ///< ops/spectrum/fourier_operators.cc
std::span<const Operator> ScalarOperators();         ///< ops/scalar/scalar.cc: casts, nrow, ncol, length
std::span<const Operator> DeclaredTypeOperators();   ///< ops/scalar/declared_type.cc: as.declared
std::span<const Operator> TextOperators();   ///< ops/text/text.cc: toString, format, print, stop, assert
std::span<const Operator> FileOperators();   ///< ops/io/formats/file_operators.cc: read, write
std::span<const Operator> FusedOperators();  ///< ops/fused/fused.cc: fused

}  // namespace heddle::ops
