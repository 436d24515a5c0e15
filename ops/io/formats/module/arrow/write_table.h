// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/io/formats/libraries/format_module.h"

namespace heddle::ops::tables {

/// ArrowModule::write.
Status WriteTable(ArrowKind kind, const ArrowSource& source,
                  const std::function<Status(std::string_view bytes)>& sink);

}  // namespace heddle::ops::tables
