// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

namespace heddle::ops {

/// What is made of the operators inside of a node, once for all nodes with equal ones. `Operators` is
/// FusedOperator or PhasedOperator. A node of a plan holds the same object call after call, which is found by
/// its address; only the first time that an object is met is its text made, and looked for among the texts of
/// other plans. Not thread-safe.
template <typename Operators, typename Made>
class ByOperators {
 public:
  /// nullptr when there is none.
  std::shared_ptr<Made> Find(const std::shared_ptr<const Operators>& operators) {
    const auto met = met_.find(operators.get());
    // Another object may have come to the address of one that is gone.
    if (met != met_.end() && IsSame(met->second.operators, operators)) return met->second.made;
    const auto found = by_text_.find(operators->ToText());
    if (found == by_text_.end()) return nullptr;
    Remember(operators, found->second);
    return found->second;
  }
  /// Where there is none.
  void Add(const std::shared_ptr<const Operators>& operators, std::shared_ptr<Made> made) {
    Remember(operators, made);
    by_text_[operators->ToText()] = std::move(made);
  }
  void Clear() {
    met_.clear();
    by_text_.clear();
  }
  size_t size() const { return by_text_.size(); }
  const std::unordered_map<std::string, std::shared_ptr<Made>>& by_text() const { return by_text_; }

 private:
  struct Met {
    std::weak_ptr<const Operators> operators;  ///< Not kept alive: plans come and go.
    std::shared_ptr<Made> made;
  };
  static constexpr size_t kMostObjectsOfText = 4;  ///< On average; one more forgets all objects.

  static bool IsSame(const std::weak_ptr<const Operators>& a, const std::shared_ptr<const Operators>& b) {
    return !a.owner_before(b) && !b.owner_before(a);
  }
  void Remember(const std::shared_ptr<const Operators>& operators, const std::shared_ptr<Made>& made) {
    if (met_.size() >= kMostObjectsOfText * (by_text_.size() + 1)) met_.clear();
    met_[operators.get()] = {operators, made};
  }

  std::unordered_map<const Operators*, Met> met_;
  std::unordered_map<std::string, std::shared_ptr<Made>> by_text_;
};

}  // namespace heddle::ops
