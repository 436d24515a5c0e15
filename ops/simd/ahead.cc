// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/ahead.h"

#include "ops/cpu.h"

namespace heddle::ops::simd {

void Ahead::Begin(const double* next, int shift) {
  next_ = reinterpret_cast<uint64_t>(next);
  step_ = kLine;
  end_ = UINT64_MAX;
  back_ = 0;
  shift_ = shift;
  first_level_ = FetchesToFirstLevel();
  if (MemoryStreams() == 1) return;
  // As many lines of the block have had their turn as are before this one: who begins elsewhere left off
  // there.
  const uint64_t block = next_ / kBlock * kBlock, turn = next_ % kBlock / kLine;
  next_ = block + turn % 8 * kPage + turn / 8 * kLine;
  step_ = kPage;
  end_ = block + kBlock;
  back_ = kBlock - kLine;
}

Ahead Ahead::AtHand(const double* cells, int shift) {
  Ahead ahead;
  ahead.next_ = reinterpret_cast<uint64_t>(cells);
  ahead.shift_ = shift;
  ahead.first_level_ = FetchesToFirstLevel();
  return ahead;
}

}  // namespace heddle::ops::simd
