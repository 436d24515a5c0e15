// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>

#include "ops/neural/windows.h"

// What pooling and its gradients share.
namespace heddle::ops {

/// A maximum starts from here, so padding never wins.
constexpr double kLeastOfPool = std::numeric_limits<double>::lowest();

/// The cells of a channel that window (i, j) covers: rows [top, bottom), columns [left, right); none of them
/// where the window is all padding.
struct PoolWindow {
  PoolWindow(const Windows& windows, int64_t i, int64_t j);
  int64_t top, bottom, left, right;
};

}  // namespace heddle::ops
