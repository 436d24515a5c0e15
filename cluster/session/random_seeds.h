// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/program.h"

namespace heddle::cluster {

class Frame;

/// Gives every call that draws (rand, sample) without a seed, or whose seed turns out to be -1, a seed of its
/// own each time it runs: a function of the job's seed, the call's place in the script, and how often it ran.
/// Equal on every rank and for any distribution.
///
/// The seed arrives as a variable "%seed<stream>" of the block, so that a plan does not depend on it.
class RandomSeeds {
 public:
  explicit RandomSeeds(int64_t job_seed) : job_seed_(job_seed) {}

  /// Rewrites the graphs of `program`; once, before it runs.
  static void Connect(Program* program);
  /// If `name` is a seed variable: draws its next value. Otherwise false.
  bool Draw(const std::string& name, int64_t* seed);
  /// Draws all seed variables that `graph` reads into `frame`; before every run of it.
  void DrawFor(const Graph& graph, Frame* frame);

  /// Seeds drawn so far; a run that goes on where another one stood begins with its number.
  int64_t draws() const { return draws_; }
  void set_draws(int64_t draws) { draws_ = draws; }

 private:
  int64_t job_seed_;
  int64_t draws_ = 0;
};

}  // namespace heddle::cluster
