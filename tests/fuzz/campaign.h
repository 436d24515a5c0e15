// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tests/fuzz/judge.h"

namespace heddle::fuzz {

struct CampaignOptions {
  std::string binary;
  uint64_t first_seed = 1;
  double seconds = 60;     ///< No case starts later.
  int64_t most_cases = 0;  ///< 0: as many as the time allows.
  bool minimize = false;
  std::string failure_folder;  ///< Where failing cases go: SEED/ with the files, "command" and "fault".

  /// Defaults for the tests, changed by HEDDLE_FUZZ_BINARY, _SEED, _SECONDS, _CASES, _MINIMIZE and _FOLDER.
  static CampaignOptions FromEnvironment();
};

struct Finding {
  uint64_t seed = 0;  ///< Of the first case.
  Fault fault;
  int64_t cases = 0;  ///< That share its signature.
};

struct CampaignReport {
  int64_t cases = 0;
  int64_t succeeded = 0;                    ///< Cases that ran to their end without an error.
  std::map<std::string, Finding> findings;  ///< By Fault::Signature().

  std::string ToText() const;
};

/// Runs and judges the cases of first_seed, first_seed + 1, ... one after the other.
CampaignReport RunCampaign(const CampaignOptions& options);

}  // namespace heddle::fuzz
