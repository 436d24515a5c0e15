// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/product/matmul_gemm.h"

namespace heddle::ops {

/// So many rows of A: more of them are better packed as B is (Run of matmul_gemm.h).
constexpr int64_t kMostFewRows = 64;

/// C = A * B for few rows of A, which are read where they are, and a packed B: the chains of GemmOf with
/// `canonical`, floats rounded. Needs no memory of its own. A is row-major, as is C.
template <typename Cell>
struct FewRowsOf {
  int64_t m = 0;  ///< At most kMostFewRows.
  int64_t n = 0, k = 0;
  const Cell* a = nullptr;
  int64_t a_row = 0;
  const PackedRightOf<Cell>* packed = nullptr;
  Cell* c = nullptr;
  int64_t c_row = 0;
  bool parallel = false;  ///< Columns of C are shared out over the calling arena.
};
void Run(const FewRowsOf<double>& product);
void Run(const FewRowsOf<float>& product);

}  // namespace heddle::ops
