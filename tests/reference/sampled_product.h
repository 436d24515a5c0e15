// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/values/matrix.h"

namespace heddle::ops::reference {

/// sampledProduct(W, U, V) as docs/numerics.md, section 3 defines it, by literal loops. The result is dense.
Matrix SampledProduct(const Matrix& w, const Matrix& u, const Matrix& v);

}  // namespace heddle::ops::reference
