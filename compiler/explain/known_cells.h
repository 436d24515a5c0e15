// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/programs/program.h"
#include "core/values/value.h"
#include "ops/base/kernel.h"

namespace heddle::compiler {

/// Values of a main script that follow from its text and the files that are there: of literals, reads, seeded
/// random numbers and operators on them, in straight-line code. Computed when asked for.
class KnownCells {
 public:
  /// `behind_writes`: reads that see other files in a run than those of now (ReadsBehindWrites). All outlive
  /// this.
  KnownCells(const Program& program, const std::map<int32_t, std::set<NodeId>>& behind_writes,
             ops::KernelContext& context)
      : program_(program), behind_writes_(behind_writes), context_(context) {}

  /// nullopt where only a run tells, or where the value cannot be computed: too large, damaged files.
  std::optional<Value> Of(const Block& block, NodeId id);

 private:
  std::optional<Value> Compute(const Block& block, NodeId id);
  std::optional<Value> OfVariable(const Block& block, const std::string& name);

  const Program& program_;
  const std::map<int32_t, std::set<NodeId>>& behind_writes_;
  ops::KernelContext& context_;
  std::map<std::pair<int32_t, NodeId>, std::optional<Value>> values_;
};

}  // namespace heddle::compiler
