// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arrow/api.h>

#include "ops/io/formats/libraries/format_module.h"
#include "ops/io/formats/module/arrow/columns.h"

namespace heddle::ops::tables {

/// Appends the texts of an array's cells: of texts and bytes they themselves, of lists and records their
/// JSON, of all else what Arrow prints.
arrow::Status AppendTexts(const arrow::Array& array, BytesAre bytes_are, ModuleColumn* out);

}  // namespace heddle::ops::tables
