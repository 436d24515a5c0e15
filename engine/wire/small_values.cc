// SPDX-License-Identifier: Apache-2.0
#include "engine/wire/small_values.h"

#include <utility>

#include "actor/run_number.h"
#include "engine/wire/value_wire.h"

namespace heddle::engine {
namespace {

constexpr int64_t kSmallValueBytes = 4 << 10;
// With what says how its bytes are to be read, names of columns among it.
constexpr size_t kMostEncodedBytes = 6 << 10;

}  // namespace

void SmallValues::Put(uint32_t run, RegisterId register_id, uint32_t slot, Value value) {
  const uint32_t first = actor::MakeRun(actor::LaneOf(run), 0);
  values_.erase(values_.lower_bound({first, 0, 0}), values_.lower_bound({run, 0, 0}));
  values_.insert_or_assign({run, register_id, slot}, std::move(value));
}

std::optional<Value> SmallValues::Take(uint32_t run, RegisterId register_id, uint32_t slot) {
  auto taken = values_.extract({run, register_id, slot});
  if (taken.empty()) return std::nullopt;
  return std::move(taken.mapped());
}

std::string SmallValues::Encode(const Value& value) {
  if (value.bytes() > kSmallValueBytes) return "";
  std::string frames = EncodeValue(value);
  return frames.size() <= kMostEncodedBytes ? frames : "";
}

}  // namespace heddle::engine
