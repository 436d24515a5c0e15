// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/cli/arguments.h"

namespace heddle::cluster::cli {

/// What was looked at, how it is, and what to do where that should be otherwise.
struct Finding {
  enum class Grade : uint8_t { kGood, kNote, kFault };
  Grade grade = Grade::kGood;
  std::string about;
  std::string text;
  std::string mend;
};
Finding GoodFinding(std::string about, std::string text);
Finding NoteFinding(std::string about, std::string text, std::string mend);
Finding FaultFinding(std::string about, std::string text, std::string mend);

/// "1.2 GB"
std::string Size(int64_t bytes);
/// Notes of a status on one line.
std::string Joined(const std::vector<std::string>& notes);

/// Prints them, a line each or with --json as one array. Returns the exit code: 1 where there is a fault.
int ReportFindings(const Arguments& arguments, const std::vector<Finding>& findings);

}  // namespace heddle::cluster::cli
