// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/programs/distribution.h"
#include "core/programs/graph.h"
#include "engine/variables/session_options.h"
#include "engine/variables/variable_copies.h"

namespace heddle::engine {

/// How a session of these options would share out the operators of blocks among its ranks: the text of
/// `explain --level distribution`. Nothing runs.
class DistributionText {
 public:
  explicit DistributionText(const SessionOptions& options) : options_(options) {}

  /// Of one block, after fusion: for every operator how it is computed and where its value is then, what is
  /// moved before, and the alternatives with their costs. Empty where there is nothing to share out. Blocks
  /// are asked for in the order of the text; variables are where the last block that assigned them left them,
  /// with the copies that blocks of loops have left since (variable_copies.h).
  Result<std::string> Of(const Graph& fused, const PlaceInProgram& place = {});

 private:
  const SessionOptions& options_;
  std::map<std::string, Distribution> variables_;
  std::map<std::string, std::vector<Distribution>> copies_;
};

}  // namespace heddle::engine
