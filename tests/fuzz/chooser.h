// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/environment/random.h"

namespace heddle::fuzz {

/// Every choice that makes a case comes from here, so that its seed alone makes it again.
class Chooser {
 public:
  explicit Chooser(uint64_t seed) : random_(seed) {}

  uint64_t Next() { return random_.Next(); }
  /// In [0, bound); bound >= 1.
  size_t Below(size_t bound) { return static_cast<size_t>(random_.Below(bound)); }
  /// In [low, high]; low when that is empty.
  int64_t Between(int64_t low, int64_t high) {
    if (high < low) return low;
    return low + static_cast<int64_t>(random_.Below(static_cast<uint64_t>(high - low) + 1));
  }
  bool Chance(int percent) { return Below(100) < static_cast<size_t>(percent); }

  template <typename T>
  const T& Pick(const std::vector<T>& values) {
    return values[Below(values.size())];
  }
  std::string Pick(std::initializer_list<const char*> values) { return values.begin()[Below(values.size())]; }
  int64_t PickNumber(std::initializer_list<int64_t> values) { return values.begin()[Below(values.size())]; }

 private:
  SeededRandom random_;
};

}  // namespace heddle::fuzz
