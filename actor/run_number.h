// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace heddle::actor {

// A run of a plan has a number, the same on all ranks: its lane (8 bits, from the top) and its place there
// (24 bits). Runs of one lane follow each other, runs of different lanes may be in flight at once. Lane 0 is
// that of a session's own program, so its runs are numbered 1, 2, 3, ... Places wrap around: no message is
// 2^23 runs late.

constexpr uint32_t kLanes = 256;
constexpr uint32_t MakeRun(uint32_t lane, uint32_t place) { return lane << 24 | (place & 0xffffff); }
constexpr uint32_t LaneOf(uint32_t run) { return run >> 24; }
/// True if `run` comes after `other` in their lane.
constexpr bool ComesAfter(uint32_t run, uint32_t other) {
  return static_cast<int32_t>((run - other) << 8) > 0;
}

}  // namespace heddle::actor
