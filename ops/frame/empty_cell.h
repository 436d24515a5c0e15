// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/values/frame.h"

namespace heddle::ops {

/// True where a cell is missing, 0 or FALSE; texts are never 0.
inline bool IsMissingOrZero(const Column& column, int64_t row) {
  if (column.IsMissing(row)) return true;
  switch (column.storage()) {
    case ColumnStorage::kDoubles: return column.doubles()[row] == 0;
    case ColumnStorage::kIntegers: return column.integers()[row] == 0;
    case ColumnStorage::kBooleans: return column.booleans()[row] == 0;
    case ColumnStorage::kTexts: return false;
  }
  HEDDLE_CHECK(false, "cells of every storage are missing, zero or something else");
}

}  // namespace heddle::ops
