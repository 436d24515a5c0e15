// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "ops/cells/sort_keys.h"

// Minima and maxima of the language as minima of whole numbers.
namespace heddle::ops {

/// A number that is the smaller the sooner the cell is a minimum (maximum): 0 for NaN.
inline uint64_t ExtremeKey(double cell, bool is_minimum) {
  if (std::isnan(cell)) return 0;
  return is_minimum ? ExactSortKey(cell) : ~ExactSortKey(cell);
}
/// The cell of such a key.
inline double CellOfExtremeKey(uint64_t key, bool is_minimum) {
  if (key == 0) return std::numeric_limits<double>::quiet_NaN();
  return NumberOfSortKey(is_minimum ? key : ~key);
}

}  // namespace heddle::ops
