// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "compiler/fuse/fuse.h"
#include "core/programs/program.h"
#include "core/values/data_type.h"

namespace heddle {
namespace ops {
class Files;
}

namespace compiler {

/// The levels of `explain` that show what fusion makes of each block: "fusion" (candidates, partitions,
/// choice), "cost" (the same with every alternative's cost), "codegen" (the code of every region),
/// "distribution" (where each value is, and why), "placement" (which device computes what), "memory" (what
/// streams, is spilled or is whole) and
/// "compression" (what is stored by groups of columns, and why).
inline constexpr std::string_view kFusionLevels[] = {
    "fusion", "cost", "codegen", "distribution", "placement", "memory", "compression"};

/// The options that a run would plan with; those levels show its plans.
struct PlanningOptions {
  /// Its callbacks and `reported_plans` are set by ExplainFusion.
  FuseOptions fuse;
  ElementType element_type = ElementType::kFloat64;  ///< Of all matrices: the precision of the program.
  ops::Files* files = nullptr;  ///< Where reads find the sizes of their files; nullptr: nowhere.
  /// Whether a block with these sizes is so small that a run takes it operator by operator, without a plan;
  /// empty: no block is.
  std::function<bool(const Graph& block)> runs_directly = {};
  /// Of level "distribution": how the ranks share out a block that is fused; told of all blocks in the order
  /// of the text.
  std::function<Result<std::string>(const Graph& fused)> distribution_of = {};
  /// Of level "placement": which operators of a block that is fused run on a device, asked for alike.
  std::function<Result<std::string>(const Graph& fused)> placement_of = {};
  /// Of level "memory": the text of a program whose shapes are propagated.
  std::function<Result<std::string>(const Program& program)> memory_of = {};
};

/// The text of one of them, but of "compression" (explain_compression.h). Sizes are those known without
/// running: reads are looked up for their sizes. Blocks whose sizes only a run tells are named as such.
Result<std::string> ExplainFusion(Program program, std::string_view level,
                                  const std::set<std::string, std::less<>>& disabled_passes,
                                  const PlanningOptions& planning);

}  // namespace compiler
}  // namespace heddle
