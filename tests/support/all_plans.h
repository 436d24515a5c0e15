// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::testing_support {

/// Whether tests that choose among plans go through all of theirs instead of a sample: HEDDLE_ALL_PLANS=1,
/// which `deploy/test --all-plans` sets.
inline bool RunsAllPlans() {
  const char* const all = std::getenv("HEDDLE_ALL_PLANS");
  return all != nullptr && std::string_view(all) == "1";
}

/// Whether tests of whole scripts try a few ways to run them instead of a pairwise cover: HEDDLE_QUICK=1,
/// which `deploy/test --quick` sets.
inline bool RunsQuickly() {
  const char* const quick = std::getenv("HEDDLE_QUICK");
  return quick != nullptr && std::string_view(quick) == "1";
}

/// The ways, of `all`, in which a test runs `name` every day: the first, and of the others every `step`-th,
/// beginning at a place that the name decides, so that many names take all of them. All with
/// HEDDLE_ALL_PLANS=1.
inline std::vector<std::string> WaysOf(std::string_view name, std::span<const char* const> all, size_t step) {
  size_t place = 0;
  for (const char letter : name) place = place * 31 + static_cast<unsigned char>(letter);
  std::vector<std::string> ways;
  for (size_t i = 0; i < all.size(); ++i)
    if (i == 0 || (i + place) % step == 0 || RunsAllPlans()) ways.emplace_back(all[i]);
  return ways;
}

}  // namespace heddle::testing_support
