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

/// The kernels of ops::kRecursiveForward and ops::kRecursiveBackward on one rank, which run one group of
/// roots after the other, and the values that they save between the two. Thread-safe.
class RecursionAdjoints {
 public:
  /// The nodes of one group of roots, as they were evaluated.
  struct Group {
    std::vector<int64_t> roots;
    std::shared_ptr<const ops::Linearized> structure;
    ops::SavedNodes nodes;
  };
  /// A number under which groups are saved; frees them when it ends.
  class Slot;

  /// All outlive it. `kernels`: those of all other operators.
  RecursionAdjoints(const SessionOptions& options, const RecursionBodies& bodies,
                    const ops::KernelSource& kernels);
  ~RecursionAdjoints();

  /// A new number, which the operators of one evaluation are given.
  std::shared_ptr<const Slot> NewSlot();

  Result<Matrix> RunForward(const ops::KernelCall& call, const Function& function) const;
  Status RunBackward(const ops::KernelCall& call, const Function& function, std::span<Value> results) const;

 private:
  struct SavedGroups;  // By slot.
  struct Setting;      // What the groups of a call share.

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
  const std::shared_ptr<SavedGroups> saved_;
};

/// May end after the session: the saved groups live as long as one of the two.
class RecursionAdjoints::Slot {
 public:
  Slot(std::shared_ptr<SavedGroups> saved, int64_t number);
  ~Slot();
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  int64_t number() const { return number_; }

 private:
  const std::shared_ptr<SavedGroups> saved_;
  const int64_t number_;
};

}  // namespace heddle::engine
