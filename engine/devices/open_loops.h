// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace heddle::engine {

/// A loop in whose body blocks run.
struct OpenLoop {
  const std::set<std::string>* assigned = nullptr;  ///< Variables that its body assigns; others stay.
  double rounds = 1;                                ///< That are left, this one included, or about as many.
};

/// Those of the call in which blocks run, the innermost last.
using OpenLoops = std::vector<OpenLoop>;

/// How many blocks in the rounds to come find the variable as it is now, about: one of each round.
inline double ReadsOf(const std::string& variable, const OpenLoops& loops) {
  double reads = 1;
  for (auto loop = loops.rbegin(); loop != loops.rend() && !loop->assigned->contains(variable); ++loop)
    reads *= loop->rounds;
  return reads;
}

/// How many times a block in them runs from now on, about.
inline double RunsOf(const OpenLoops& loops) {
  double runs = 1;
  for (const OpenLoop& loop : loops) runs *= std::max(loop.rounds, 1.0);
  return runs;
}

}  // namespace heddle::engine
