// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/recently_used.h"

namespace heddle::ops {

/// What is made of the operators inside of a node, once for all nodes with equal ones; the least recently
/// used goes. `Operators` is FusedOperator or PhasedOperator.
///
/// A node of a plan holds the same object call after call, which is found by its address; only the first time
/// that an object is met is its text made, and looked for among the texts of other plans. Not thread-safe.
template <typename Operators, typename Made>
class ByOperators {
 public:
  explicit ByOperators(size_t most) : entries_(most) {}

  /// nullptr when there is none.
  std::shared_ptr<Made> Find(const std::shared_ptr<const Operators>& operators) {
    // Another object may have come to the address of one that is gone.
    if (const auto met = met_.find(operators.get());
        met != met_.end() && IsSame(met->second.operators, operators))
      return entries_.Use(met->second.place).made;
    const auto found = by_text_.find(operators->ToText());
    if (found == by_text_.end()) return nullptr;
    Remember(operators, found->second);
    return entries_.Use(found->second).made;
  }
  /// Where there is none. `drop` is called with what goes for it.
  template <typename Drop>
  void Add(const std::shared_ptr<const Operators>& operators, std::shared_ptr<Made> made, Drop drop) {
    const auto at = by_text_.emplace(operators->ToText(), Place()).first;
    UnlessKept unfinished(by_text_, at);
    const auto finish = [&] {
      at->second = entries_.first();
      unfinished.Keep();
    };
    entries_.Add({std::move(made), &at->first, {}}, 0, [&](Entry& gone) {
      finish();  // It is in the list, whatever becomes of what goes for it.
      drop(*gone.made);
      for (const Operators* const object : gone.objects) met_.erase(object);
      by_text_.erase(by_text_.find(*gone.text));
    });
    finish();
    Remember(operators, at->second);
  }
  template <typename Visit>
  void Each(Visit visit) const {
    for (const auto& [text, place] : by_text_) visit(*place->value.made);
  }
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::shared_ptr<Made> made;
    const std::string* text;                // in by_text_
    std::vector<const Operators*> objects;  // in met_, but addresses that another object has by now
  };
  using Place = typename RecentlyUsedList<Entry>::Place;
  struct Met {
    std::weak_ptr<const Operators> operators;  // Plans come and go.
    Place place;
  };
  static constexpr size_t kMostObjects = 8;  // Equal ones that are met by their address.

  static bool IsSame(const std::weak_ptr<const Operators>& a, const std::shared_ptr<const Operators>& b) {
    return !a.owner_before(b) && !b.owner_before(a);
  }
  void Remember(const std::shared_ptr<const Operators>& operators, Place place) {
    std::vector<const Operators*>& objects = place->value.objects;
    if (objects.size() == kMostObjects) {
      met_.erase(objects.front());
      objects.erase(objects.begin());
    }
    objects.push_back(operators.get());
    met_[operators.get()] = {operators, place};
  }

  RecentlyUsedList<Entry> entries_;
  std::unordered_map<std::string, Place> by_text_;
  std::unordered_map<const Operators*, Met> met_;
};

}  // namespace heddle::ops
