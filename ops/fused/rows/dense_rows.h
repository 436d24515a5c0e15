// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/fused/program/tile_program.h"
#include "ops/simd/prefetch.h"

// Dense rows of a tile, which are in the cache: into the payload of a root, in the orders of
// docs/numerics.md, or to another place. Along entries: entries.h. Strides are in doubles.
namespace heddle::ops {

/// Adds some rows to the payload of a full or column aggregate; `row_in_panel` is that of the first.
void AddRows(const TileRoot& root, const double* x, int64_t x_stride, int64_t rows, int64_t columns,
             int64_t row_in_panel, double* payload);

/// Adds t(X) Y of some rows. `prefetch` is what comes from memory next, or null; `lane` the first row's place
/// in its panel, modulo 8.
void AddProduct(const TileRoot& root, const double* x, int64_t x_stride, const double* y, int64_t y_stride,
                int64_t rows, const simd::Prefetch& prefetch, int64_t lane, double* payload);

/// `columns` cells of each row; neither stride needs to be `columns`.
void CopyRows(const double* from, int64_t from_stride, int64_t rows, int64_t columns, double* to,
              int64_t to_stride);

}  // namespace heddle::ops
