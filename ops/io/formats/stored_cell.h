// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace heddle::ops {

/// A cell of a sparse matrix in a file that stores its row and column with it, counted from 0.
struct StoredCell {
  int64_t row = 0;
  int64_t column = 0;
  double value = 0;
};

}  // namespace heddle::ops
