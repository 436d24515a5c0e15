// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "core/programs/plan.h"
#include "core/values/value.h"

namespace heddle::engine {

/// Values that came with the message that announces them and have not been pulled yet. Not thread-safe.
class SmallValues {
 public:
  /// Drops those of earlier runs of the same lane, which ended early.
  void Put(uint32_t run, RegisterId register_id, uint32_t slot, Value value);
  std::optional<Value> Take(uint32_t run, RegisterId register_id, uint32_t slot);

  /// `value` for travelling with its message, or "" when it is too large for that.
  static std::string Encode(const Value& value);

 private:
  std::map<std::tuple<uint32_t, RegisterId, uint32_t>, Value> values_;
};

}  // namespace heddle::engine
