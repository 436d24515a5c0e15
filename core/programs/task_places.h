// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/programs/plan.h"

namespace heddle {

/// Where tasks stand in a list, by their ids.
class TaskPlaces {
 public:
  static constexpr size_t kNone = SIZE_MAX;

  explicit TaskPlaces(std::span<const Task> tasks) {
    places_.reserve(tasks.size());
    for (size_t i = 0; i < tasks.size(); ++i) places_.emplace_back(tasks[i].id, i);
    std::sort(places_.begin(), places_.end());
  }
  /// kNone where the list has no such task.
  size_t Of(TaskId id) const {
    const auto found = std::lower_bound(places_.begin(), places_.end(), std::pair<TaskId, size_t>(id, 0));
    return found == places_.end() || found->first != id ? kNone : found->second;
  }
  /// A task whose id another one has, too; kNone where there is none.
  size_t Double() const {
    const auto found = std::adjacent_find(places_.begin(), places_.end(),
                                          [](const auto& a, const auto& b) { return a.first == b.first; });
    return found == places_.end() ? kNone : found->second;
  }

 private:
  std::vector<std::pair<TaskId, size_t>> places_;  // Sorted.
};

}  // namespace heddle
