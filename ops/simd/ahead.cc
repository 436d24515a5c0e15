// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/ahead.h"

#include <algorithm>

#include "core/panels.h"
#include "ops/cpu.h"

namespace heddle::ops::simd {

Ahead::Ahead(const double* cells, int64_t count, int shift) : next_(cells), shift_(shift) {
  constexpr int64_t kPage = 512;  // Doubles.
  const int64_t streams = std::min<int64_t>(MemoryStreams(), count / kPage);
  if (streams < 2) return;
  step_ = CeilDivide(count, 8 * streams) * 8;
  back_ = streams * step_ - 8;
  end_ = reinterpret_cast<uintptr_t>(cells + streams * step_);
}

}  // namespace heddle::ops::simd
