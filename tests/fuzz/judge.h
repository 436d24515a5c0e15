// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "tests/fuzz/fuzz_case.h"
#include "tests/fuzz/watched_process.h"

namespace heddle::fuzz {

/// What is wrong with a run.
struct Fault {
  std::string kind;    ///< "signal 11", "exit 70", "memory", "bytes differ", ...
  std::string detail;  ///< What was seen.

  /// Kind and detail without numbers and names: the same for all cases that the same line of code is to blame
  /// for, mostly.
  std::string Signature() const;
};

/// A run of a case and what it left in its folder, inputs among it.
struct Run {
  Watched watched;
  std::map<std::string, std::string> files;
};

/// What may be asked of any run: it ends by itself or when asked to, without a signal, inside its memory,
/// with a documented exit code; an error is told in at most 12 lines, with the place in the script, in
/// printable UTF-8.
std::optional<Fault> JudgeAlone(const Run& run);

/// What may be asked of two runs of one case (FuzzCase::agreement), both without a fault.
std::optional<Fault> JudgeTogether(const FuzzCase& c, const Run& first, const Run& second);

struct Judgement {
  std::optional<Fault> fault;
  bool succeeded = false;  ///< The first run ended with exit code 0.
};

/// Runs a case with this binary, in folders of their own, and judges it.
Judgement RunAndJudge(const FuzzCase& c, const std::string& binary, const Limits& limits = Limits());

}  // namespace heddle::fuzz
