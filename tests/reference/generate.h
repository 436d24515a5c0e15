// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/values/matrix.h"
#include "ops/generate/rand.h"

// What rand() means, as literal loops. Slow; the result is dense. For tests only.
namespace heddle::ops::reference {

/// The whole matrix, block by block, without jumps: every number of every stream is drawn in turn.
Matrix Random(const RandRequest& request);
/// sample(range, size, replace, seed).
Matrix Sample(int64_t range, int64_t size, bool replace, int64_t seed);

}  // namespace heddle::ops::reference
