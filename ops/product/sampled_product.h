// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/values/matrix.h"

namespace heddle::ops {

/// Rows [begin, end) of sampledProduct(W, U, V), CSR W and dense U and V: the value of entry e of W goes to
/// out[e - w.row_offsets()[0]].
void SampleRows(const Matrix& w, const Matrix& u, const Matrix& v, int64_t begin, int64_t end, double* out);

}  // namespace heddle::ops
