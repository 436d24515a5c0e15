// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cluster/session/session.h"

namespace heddle::cluster {

/// What a script did.
struct ScriptOutcome {
  Status status;
  std::string output;
  std::vector<SessionStatistics> statistics;  ///< By rank.
};

/// Compiles `text` as "test.dml"; stops the test when that fails.
Program CompileOrDie(const std::string& text);
/// Runs a script with options.ranks sessions in this process, on real threads, joined by the in-memory
/// network.
ScriptOutcome RunScript(const std::string& text, SessionOptions options = {});
/// Options for `ranks` ranks that split every matrix that can be split.
SessionOptions SplitOver(int ranks, int threads = 1);

}  // namespace heddle::cluster
