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

}  // namespace heddle::testing_support
