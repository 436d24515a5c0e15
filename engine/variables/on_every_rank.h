// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "core/status.h"

namespace heddle::engine {

/// `result`, whose failure every rank has, because all of them compute it of the same scalars, sizes and
/// types (Status::is_on_every_rank).
template <typename T>
Result<T> OnEveryRank(Result<T> result) {
  if (!result.ok()) return result.status().OnEveryRank();
  return result;
}

}  // namespace heddle::engine
