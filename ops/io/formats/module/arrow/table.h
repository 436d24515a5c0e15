// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ops/io/formats/libraries/format_module.h"

namespace heddle::ops::tables {

/// ArrowModule::open.
Result<std::unique_ptr<ArrowTable>> OpenTable(ArrowKind kind, const ModuleInput& input,
                                              const std::vector<int64_t>& begins);

}  // namespace heddle::ops::tables
