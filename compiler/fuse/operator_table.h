// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace heddle::compiler::fusion {

/// What an operator does to the rows that a fused operator walks.
enum class RowUse : uint8_t {
  kCells,              ///< Cell by cell, vectors and scalars repeated.
  kFullAggregate,      ///< All cells to a scalar.
  kRowAggregate,       ///< Each row to a cell.
  kColumnAggregate,    ///< Each column to a cell.
  kProduct,            ///< X %*% B: rows of X, B whole.
  kTransposedProduct,  ///< t(X) %*% Y: rows of X and Y.
  kColumnRange,        ///< X[, a:b]
  kCbind,
  kSampledProduct,  ///< U %*% t(V) at the non-zeros of X; inputs X, U, V.
};

/// One line per operator that may be inside a fused operator: what the predicates of the templates and the
/// cost model know about it. `flops` is per cell of the result, of aggregates per cell of the input, of
/// products per multiply-add.
struct FusionOperator {
  std::string_view name;
  RowUse use = RowUse::kCells;
  bool cell = false;           ///< The Cell template may hold it.
  bool row = false;            ///< The Row template may hold it.
  bool outer = false;          ///< The Outer template may hold it.
  double published_flops = 1;  ///< The published table (scalar code).
  /// This engine: vector code, by the measured time of a cell beside that of an addition (docs/fusion.md,
  /// section 2: between those of AVX-512 and AVX2).
  double flops = 1;
};

/// nullptr when the operator never is part of a fused operator.
const FusionOperator* FindFusionOperator(std::string_view name);

}  // namespace heddle::compiler::fusion
