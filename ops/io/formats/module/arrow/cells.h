// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arrow/api.h>

#include "ops/io/formats/libraries/format_module.h"
#include "ops/io/formats/module/arrow/columns.h"

namespace heddle::ops::tables {

/// Appends the cells of an array to those of a column. Numbers become what a column of `type` has; any of
/// them may become doubles, the nearest ones. CapacityError: what a cell holds that no such column can have,
/// "holds 18446744073709551615, which ...".
arrow::Status AppendCells(const arrow::Array& array, ColumnType type, BytesAre bytes_are, ModuleColumn* out);

}  // namespace heddle::ops::tables
