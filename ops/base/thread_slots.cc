// SPDX-License-Identifier: Apache-2.0
#include "ops/base/thread_slots.h"

namespace heddle::ops {

size_t ThreadNumber() {
  static std::atomic<size_t> threads = 0;
  thread_local const size_t number = threads.fetch_add(1, std::memory_order_relaxed);
  return number;
}

}  // namespace heddle::ops
