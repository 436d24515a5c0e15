// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/fused/entries.h"
#include "ops/simd/aggregate.h"

// Rows that have values at the entries of a CSR matrix and one value everywhere else (entry_defaults.h):
// `defaults` has it by row; null: 0.
namespace heddle::ops {

/// `sum + x + x + ...`, so many additions one after the other, each rounded. Takes steps of a whole binade of
/// the sum, in which all of them add the same.
double AddRepeatedly(double sum, double x, int64_t times);

/// The fold of each of `rows` rows of n columns, in the order of simd::FoldRows.
void FoldDefaultedRows(simd::Fold fold, const Entries& x, const double* defaults, int64_t rows, int64_t n,
                       double* out);

/// All cells of the rows, `stride` apart.
void SpreadDefaultedRows(const Entries& x, const double* defaults, int64_t rows, int64_t n, double* out,
                         int64_t stride);

}  // namespace heddle::ops
