// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "engine/recursion/bodies.h"
#include "ops/base/kernel.h"
#include "ops/recursion/adjoint/adjoint_sums.h"

namespace heddle::engine {

/// The kernels of "recursiveForward" and "recursiveBackward" on one rank
/// (ops/recursion/recursive_operator.h), group by group, and what they keep between the two. Thread-safe.
class RecursionAdjoints {
 public:
  /// The nodes of one group of roots, as they were evaluated.
  struct Group {
    std::vector<int64_t> roots;
    std::shared_ptr<const ops::Linearized> structure;
    ops::KeptNodes nodes;
  };
  /// Groups that are kept, by their numbers, as long as there is a Place.
  class Place;

  /// All outlive it. `kernels`: those of all other operators.
  RecursionAdjoints(const SessionOptions& options, const RecursionBodies& bodies,
                    const ops::KernelSource& kernels);
  ~RecursionAdjoints();

  /// A new place, whose number tells the operators of it.
  std::shared_ptr<const Place> NewPlace();

  Result<Matrix> RunForward(const ops::KernelCall& call, const Function& function) const;
  Status RunBackward(const ops::KernelCall& call, const Function& function, std::span<Value> results) const;

 private:
  struct Kept;     // All that is kept.
  struct Setting;  // What the groups of a call share.

  Result<Setting> SettingOf(const ops::KernelCall& call, const Function& function,
                            const std::vector<std::string>& names, size_t first_input) const;
  Result<std::shared_ptr<const Group>> Evaluate(const Setting& setting, std::vector<int64_t> roots,
                                                ops::KernelContext& context) const;
  Result<ops::AdjointSums> SweepBack(const ops::KernelCall& call, const Setting& setting,
                                     const std::map<std::string, ValueInfo>& wanted, int64_t row) const;
  Result<std::vector<ops::AdjointAt>> GivenIn(const ops::KernelCall& call, const Function& function,
                                              const Group& group, int64_t number) const;

  const SessionOptions& options_;
  const RecursionBodies& bodies_;
  const ops::KernelSource& kernels_;
  const std::shared_ptr<Kept> kept_;
};

/// Gives back what is kept when it ends, also behind the session.
class RecursionAdjoints::Place {
 public:
  Place(std::shared_ptr<Kept> kept, int64_t number);
  ~Place();
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  int64_t number() const { return number_; }

 private:
  const std::shared_ptr<Kept> kept_;
  const int64_t number_;
};

}  // namespace heddle::engine
