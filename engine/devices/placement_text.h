// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "core/programs/graph.h"
#include "core/programs/residence.h"
#include "engine/variables/session_options.h"

namespace heddle::engine {

/// Which operators of a program run on the device of a session, for `explain`.
class PlacementText {
 public:
  explicit PlacementText(const SessionOptions& options) : options_(options) {}

  /// Of one block, after fusion: for each operator on matrices where it runs, how long it takes there and on
  /// the processor, or why it runs on the processor alone; and which values are copied. Empty without a
  /// device. Blocks are asked for in the order of the text, and their variables are where the last block that
  /// assigned them left them. Loops around a block are not looked at: its copies count in full.
  Result<std::string> Of(const Graph& fused);

 private:
  const SessionOptions& options_;
  std::map<std::string, Residence> residences_;
};

}  // namespace heddle::engine
