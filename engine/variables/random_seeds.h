// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/programs/program.h"

namespace heddle::engine {

class VariableTable;

/// Gives every call that draws (rand, sample) without a seed, or whose seed turns out to be -1, a seed of its
/// own each time it runs: a function of the job's seed, the call's place in the script, and how often it ran
/// (in a parfor: of the iteration, and how often it ran there). Equal on every rank and for any distribution.
///
/// The seed arrives as a variable "%seed<stream>" of the block, so that a plan does not depend on it.
class RandomSeeds {
 public:
  explicit RandomSeeds(int64_t job_seed) : scopes_{{.seed = job_seed}} {}

  /// Rewrites the graphs of `program`; once, before it runs.
  static void Connect(Program* program);
  /// If `name` is a seed variable: draws its next value. Otherwise false.
  bool Draw(const std::string& name, int64_t* seed);
  /// Whether `graph` reads seed variables.
  static bool IsDrawnFor(const Graph& graph);
  /// Draws all seed variables that `graph` reads into `frame`; before every run of it.
  void DrawFor(const Graph& graph, VariableTable* frame);

  /// What draws come from: the job, or an iteration of a parfor. Iterations have seeds of their own, so that
  /// they may run in any order.
  struct Scope {
    int64_t seed = 0;
    int64_t draws = 0;  ///< So far,
    int64_t loops = 0;  ///< and parfors that began; they do not count among the draws.
    bool operator==(const Scope&) const = default;
  };
  /// A parfor begins: the seed of its iterations.
  int64_t EnterLoop();
  /// What iteration `number` (from 0) of a parfor draws from.
  static Scope Iteration(int64_t loop_seed, uint64_t number);

  /// The job's, and within it those of the iterations under way; never empty.
  const std::vector<Scope>& scopes() const { return scopes_; }
  std::vector<Scope>& scopes() { return scopes_; }

 private:
  std::vector<Scope> scopes_;
};

}  // namespace heddle::engine
