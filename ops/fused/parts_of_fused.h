// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "core/programs/fused_operator.h"
#include "core/recently_used.h"
#include "ops/fused/fused.h"

namespace heddle::ops {

/// Fused operators as ranks run them on some columns of their inputs, by the whole operator and the number of
/// columns: a plan asks for the same again. Thread-safe.
class PartsOfFused {
 public:
  /// `make(part)` makes the part of the copy of the whole operator that it gets.
  template <typename Make>
  std::shared_ptr<const FusedOperator> Of(const std::shared_ptr<const FusedOperator>& whole, int64_t columns,
                                          const Make& make) {
    const std::lock_guard lock(mutex_);
    const Key key = {whole.get(), columns};
    Part* const found = parts_.Find(key);
    // Another object may have come to the address of one that is gone.
    if (found != nullptr && found->whole.lock() == whole) return found->part;
    auto part = std::make_shared<FusedOperator>(*whole);
    make(*part);
    if (found != nullptr)
      *found = {whole, part};
    else
      parts_.Add(key, Part{whole, part});
    return part;
  }

 private:
  using Key = std::pair<const FusedOperator*, int64_t>;
  struct Part {
    std::weak_ptr<const FusedOperator> whole;
    std::shared_ptr<const FusedOperator> part;
  };
  std::mutex mutex_;
  RecentlyUsedMap<Key, Part> parts_{FusedRuntime::kMostPrograms};
};

}  // namespace heddle::ops
