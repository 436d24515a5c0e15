// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/values/frame.h"

namespace heddle::ops {

/// Columns [begin, end). Names stay; what has none stays unnamed.
Schema ColumnsOf(const Schema& schema, int64_t begin, int64_t end);
Frame ColumnsOf(const Frame& frame, int64_t begin, int64_t end);

}  // namespace heddle::ops
