// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::ops {

/// The decisions that nodes have made one after the other, as a tree. Where the decisions of a node end is a
/// place of the tree, and says the node's class.
class DecisionTree {
 public:
  static constexpr int32_t kRoot = 0;
  static constexpr int32_t kTooDeep = 0;

  explicit DecisionTree(int32_t most_decisions) : most_decisions_(most_decisions) { Clear(); }

  void Clear() {
    places_.assign(1, {});
    ends_.clear();
  }
  /// The place after one more decision; kTooDeep after too many.
  int32_t Decide(int32_t place, bool taken) {
    const int32_t next = places_[static_cast<size_t>(place)].to[taken ? 1 : 0];
    return next != kTooDeep ? next : Add(place, taken);
  }
  /// Classes are numbered from 0, in the order in which they are met.
  int32_t ClassOf(int32_t place) {
    int32_t& number = places_[static_cast<size_t>(place)].number;
    if (number < 0) {
      number = static_cast<int32_t>(ends_.size());
      ends_.push_back(place);
    }
    return number;
  }
  std::vector<bool> DecisionsOf(int32_t class_number) const {
    std::vector<bool> decisions;
    for (int32_t place = ends_[static_cast<size_t>(class_number)]; place != kRoot;
         place = places_[static_cast<size_t>(place)].from)
      decisions.push_back(places_[static_cast<size_t>(place)].taken);
    std::reverse(decisions.begin(), decisions.end());
    return decisions;
  }

 private:
  struct Place {
    int32_t to[2] = {kTooDeep, kTooDeep};
    int32_t from = kRoot;
    int32_t decisions = 0;
    bool taken = false;
    int32_t number = -1;
  };
  int32_t Add(int32_t from, bool taken) {
    const int32_t decisions = places_[static_cast<size_t>(from)].decisions + 1;
    if (decisions > most_decisions_) return kTooDeep;
    const auto place = static_cast<int32_t>(places_.size());
    places_.push_back({.from = from, .decisions = decisions, .taken = taken});
    places_[static_cast<size_t>(from)].to[taken ? 1 : 0] = place;
    return place;
  }

  const int32_t most_decisions_;
  std::vector<Place> places_;
  std::vector<int32_t> ends_;
};

}  // namespace heddle::ops
