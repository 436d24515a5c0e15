// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/programs/graph.h"
#include "engine/recursion/kernels.h"
#include "engine/variables/variables.h"

namespace heddle::engine {

/// What recursions need of the session that runs them, on one rank. All ranks take part in each call, in the
/// same order.
class GraphRunner {
 public:
  virtual ~GraphRunner() = default;

  /// Brings variables of `frame`, matrices or frames, to where they are wanted.
  virtual Status Exchange(const std::map<std::string, Distribution>& wanted, VariableTable* frame) = 0;
  /// Runs a graph of known sizes as one plan, whose variables named in `wanted` every rank has then.
  /// `history` tells it from others of the block whose nodes have the same sizes. Errors carry their place.
  virtual Status RunForAll(int32_t block, const Graph& graph, uint64_t history,
                           const std::vector<std::string>& wanted, VariableTable* frame) = 0;
  /// A text that rank 0 makes and all ranks get, about what is to come next by `key`. kInternal when the
  /// ranks disagree about what comes next.
  virtual Result<std::string> Share(uint64_t key, const std::function<std::string()>& make) = 0;
  /// What the session saves of its recursions on this rank.
  virtual RecursionKernels& recursions() = 0;
};

}  // namespace heddle::engine
