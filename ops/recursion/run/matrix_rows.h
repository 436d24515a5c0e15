// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/values/matrix.h"

// Bytes of dense matrices of any element type that have a row for each node.
namespace heddle::ops {

inline int64_t RowBytes(const Matrix& matrix) { return matrix.columns() * BytesOf(matrix.element_type()); }
inline const char* RowOf(const Matrix& matrix, int64_t row) {
  return reinterpret_cast<const char*>(matrix.data<char>()) + row * RowBytes(matrix);
}
/// Of what this evaluation made.
inline char* MutableRowOf(const Matrix& matrix, int64_t row) { return const_cast<char*>(RowOf(matrix, row)); }

}  // namespace heddle::ops
