// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/programs/program.h"

namespace heddle::engine {

class VariableTable;

/// The seeds of calls (rand, sample) that have none, or -1, in the script. Each time such a call runs it gets
/// another one: a function of the job's seed, the call's place in the script, and how often seeds were drawn
/// before (in a parfor: of the iteration, and how often it drew). So every rank draws the same seeds, however
/// values are distributed.
///
/// A seed reaches the operator as a variable "%seed<stream>" of the block, and no plan depends on its value.
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

  /// Whose draws are counted together: the job's, or those of one iteration of a parfor, so that iterations
  /// may run in any order.
  struct Scope {
    int64_t seed = 0;
    int64_t draws = 0;  ///< So far,
    int64_t loops = 0;  ///< and parfors that began; they do not count among the draws.
    bool operator==(const Scope&) const = default;
  };
  /// A parfor begins: the seed of its iterations.
  int64_t EnterLoop();
  /// The scope of iteration `number` (from 0) of a parfor.
  static Scope Iteration(int64_t loop_seed, uint64_t number);

  /// The job's, and within it those of the iterations under way; never empty.
  const std::vector<Scope>& scopes() const { return scopes_; }
  std::vector<Scope>& scopes() { return scopes_; }

 private:
  std::vector<Scope> scopes_;
};

}  // namespace heddle::engine
