// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <string_view>

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

}  // namespace heddle::testing_support
