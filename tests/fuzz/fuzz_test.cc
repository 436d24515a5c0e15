// SPDX-License-Identifier: Apache-2.0
// Random scripts and data, right and wrong ones, against the built binary: no signal, no exit code 70,
// nothing beyond the promised memory, and the same bytes whichever way they run. tests/README.md says how to
// use it.
#include <gtest/gtest.h>

#include "tests/fuzz/campaign.h"

namespace heddle::fuzz {
namespace {

TEST(FuzzTest, EveryScriptAndFileEndsInAResultOrAnError) {
  const CampaignOptions options = CampaignOptions::FromEnvironment();
  const CampaignReport report = RunCampaign(options);
  std::cout << report.ToText();
  EXPECT_TRUE(report.findings.empty())
      << "again: HEDDLE_FUZZ_CASES=1 HEDDLE_FUZZ_SEED=N HEDDLE_FUZZ_MINIMIZE=1; the inputs are in "
      << options.failure_folder << "\n"
      << report.ToText();
  // A fuzzer whose scripts never get far shows nothing.
  if (report.cases >= 100) {
    EXPECT_GE(report.succeeded * 5, report.cases);
  }
}

}  // namespace
}  // namespace heddle::fuzz
