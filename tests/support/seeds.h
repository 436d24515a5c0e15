// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "tests/support/all_plans.h"

namespace heddle::testing_support {

/// The seeds that a test tries, [begin, end).
struct Seeds {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t count() const { return end - begin; }
};

/// The first `usual` ones in every run of the tests and three times as many with HEDDLE_ALL_PLANS=1; by hand
/// HEDDLE_SEEDS=100000 of them, and HEDDLE_FIRST_SEED=100000 says where they begin, so that many are tried in
/// parts.
inline Seeds SeedsOf(uint64_t usual) {
  const auto number = [](const char* name, uint64_t otherwise) {
    const char* const text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
  };
  const uint64_t begin = number("HEDDLE_FIRST_SEED", 0);
  return {begin, begin + number("HEDDLE_SEEDS", RunsAllPlans() ? 3 * usual : usual)};
}

}  // namespace heddle::testing_support
