// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

// Panels, granules and cuts (docs/numerics.md, section 2). All functions of shapes only, never of the
// machine.
namespace heddle {

/// Largest power of two <= x, for x >= 1.
constexpr int64_t FloorPowerOfTwo(int64_t x) {
  int64_t power = 1;
  while (power <= x / 2) power *= 2;
  return power;
}

constexpr int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Rows of a granule of a matrix with m rows: distributed matrices are cut at multiples of it only.
constexpr int64_t Granule(int64_t m) {
  return std::clamp<int64_t>(FloorPowerOfTwo(std::max<int64_t>(m / 32, 1)), 64, 8192);
}
/// Panel height of full aggregates of an m x n matrix.
constexpr int64_t FullPanelHeight(int64_t m, int64_t n) {
  return std::min(Granule(m), FloorPowerOfTwo(std::max<int64_t>(1, 131072 / std::max<int64_t>(n, 1))));
}
/// Panel height of column aggregates and of t(X) %*% w, whose payloads have a place for every column: high
/// enough that joining them costs little beside the rows, even where those have few entries; while it makes
/// no difference, low enough for some 256 panels.
constexpr int64_t ColumnPanelHeight(int64_t m, int64_t n) {
  if (n > 2048) return Granule(m);
  return std::min(Granule(m),
                  std::max(FullPanelHeight(m, n), FloorPowerOfTwo(std::max<int64_t>(m / 256, 1))));
}
/// Of colVars and colSds, which read a panel twice.
constexpr int64_t MomentsPanelHeight(int64_t m, int64_t n) {
  return std::min(Granule(m), std::max<int64_t>(64, FullPanelHeight(m, n)));
}
/// Rows longer than this are cut into column chunks for row and full aggregates.
constexpr int64_t kColumnChunk = 65536;

/// First row that worker `worker` of `workers` owns of a matrix with m rows; worker == workers gives m. Cuts
/// are multiples of a granule: of those within a 128th of a worker's share of the even cut, the one that is a
/// multiple of the largest power of two, so that a worker's share of a reduction tree is a few nodes.
constexpr int64_t CutRow(int64_t m, int worker, int workers) {
  if (worker <= 0) return 0;
  if (worker >= workers) return m;
  const int64_t granule = Granule(m);
  const int64_t granules = CeilDivide(m, granule);
  const int64_t even = granules / workers * worker + granules % workers * worker / workers;
  const int64_t slack = granules / (int64_t{128} * workers);
  int64_t cut = even;
  for (int64_t unit = 2; unit <= even + slack; unit *= 2) {
    const int64_t below = (even + slack) / unit * unit;
    if (below < even - slack) break;
    cut = below;
  }
  return std::min(m, cut * granule);
}

}  // namespace heddle
