// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/programs/plan.h"

namespace heddle::scheduler {

/// How many entries the rows of CSR matrices in a plan have at most: those of live-ins that have been
/// counted, of copies, and of what is computed of them cell by cell. A device keeps entries that have become
/// zero.
class PanelEntries {
 public:
  /// `counted`: by the name of the variable, as ops::MostEntries (ops/panels/entry_counts.h) has them.
  PanelEntries(const Plan& plan, const std::map<std::string, std::vector<int64_t>>& counted);

  /// Bytes of the entries of `height` rows, a power of two of granules, which begin at a multiple of it;
  /// kUnknown where nothing tells how many there are.
  int64_t MostBytes(RegisterId id, int64_t height) const;

 private:
  static size_t Index(RegisterId id) { return static_cast<size_t>(id); }
  std::vector<int64_t> CountsOf(const Task& task, const Register& made) const;

  const Plan& plan_;
  std::vector<std::vector<int64_t>> most_;  // By register; empty: not known.
};

/// Adds to Register::bytes of CSR matrices in the memory of devices what their entries take at most, as far
/// as that is known; registers are those of all rows. `counted`: as PanelEntries has them.
void CountEntriesOnDevices(Plan* plan, const std::map<std::string, std::vector<int64_t>>& counted);

}  // namespace heddle::scheduler
