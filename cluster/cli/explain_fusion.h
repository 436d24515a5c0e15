// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "core/programs/program.h"
#include "engine/session/session.h"

namespace heddle::cluster::cli {

/// The levels of `explain` that show what fusion makes of each block: "fusion" (candidates, partitions,
/// choice), "cost" (the same with every alternative's cost) and "codegen" (the code of every region).
inline constexpr std::string_view kFusionLevels[] = {"fusion", "cost", "codegen"};

/// The text of one of them. Sizes are those known without running: reads are looked up for their sizes.
/// Blocks whose sizes only a run tells are named as such.
Result<std::string> ExplainFusion(Program program, std::string_view level,
                                  const engine::SessionOptions& session);

}  // namespace heddle::cluster::cli
