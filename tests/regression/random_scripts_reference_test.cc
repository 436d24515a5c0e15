// SPDX-License-Identifier: Apache-2.0
// Random scripts write the same bytes in every way Heddle runs them, and what NumPy computes
// (random_scripts_reference.py).
#include <gtest/gtest.h>

#include "tests/support/all_plans.h"
#include "tests/support/process.h"

namespace heddle {
namespace {

TEST(RandomScriptsReferenceTest, NumPyFindsTheSame) {
  const testing_support::TemporaryFolder folder;
  const char* const count = testing_support::RunsAllPlans() ? "200" : "10";
  const testing_support::Finished finished = testing_support::RunProcess(
      {"/usr/bin/python3", HEDDLE_SOURCE_DIR "/tests/regression/random_scripts_reference.py",
       HEDDLE_BINARY_DIR "/heddle", folder.path(), "0", count},
      folder.path(), 3000);
  EXPECT_EQ(finished.code, 0) << finished.output << finished.errors;
  EXPECT_TRUE(finished.output.ends_with("0 with differences\n")) << finished.output;
}

}  // namespace
}  // namespace heddle
