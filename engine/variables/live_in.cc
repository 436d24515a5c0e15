// SPDX-License-Identifier: Apache-2.0
#include "engine/variables/live_in.h"

#include <optional>

namespace heddle::engine {

compiler::LiveIn LiveInOf(const Variable& variable) {
  compiler::LiveIn known{variable.info, std::nullopt, nullptr};
  if (variable.info.IsScalar() && !variable.is_placeholder && !compiler::IsLongText(variable.value.scalar()))
    known.value = variable.value.scalar();
  return known;
}

}  // namespace heddle::engine
