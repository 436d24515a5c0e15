// SPDX-License-Identifier: Apache-2.0
#include "engine/session/limit_of_run.h"

#include <mutex>
#include <set>

#include "core/memory/memory_budget.h"

namespace heddle::engine {
namespace {

struct Limits {
  std::mutex mutex;
  std::multiset<int64_t> asked_for;
  int64_t before = 0;  // Of the process, while there are some.
};

Limits& TheLimits() {
  static Limits* const limits = new Limits;
  return *limits;
}

}  // namespace

LimitOfRun::LimitOfRun(int64_t memory_bytes) : memory_bytes_(memory_bytes) {
  if (memory_bytes_ <= 0) return;
  Limits& limits = TheLimits();
  const std::lock_guard lock(limits.mutex);
  if (limits.asked_for.empty()) limits.before = MemoryBudget::Process().limit();
  limits.asked_for.insert(memory_bytes_);
  MemoryBudget::Process().SetLimit(*limits.asked_for.begin());
}

LimitOfRun::~LimitOfRun() {
  if (memory_bytes_ <= 0) return;
  Limits& limits = TheLimits();
  const std::lock_guard lock(limits.mutex);
  limits.asked_for.erase(limits.asked_for.find(memory_bytes_));
  MemoryBudget::Process().SetLimit(limits.asked_for.empty() ? limits.before : *limits.asked_for.begin());
}

}  // namespace heddle::engine
