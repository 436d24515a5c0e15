// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/programs/program.h"
#include "engine/session/session.h"

namespace heddle {
class Clock;
}

namespace heddle::engine {

/// Where Precompile ends at the latest.
struct PrecompileLimits {
  int64_t most_bytes = int64_t{1} << 20;  ///< Of all texts.
  int most_plans = 64;                    ///< A quarter of what a plan cache has room for.
  int most_nodes = 20'000;                ///< Of a graph: how long one takes cannot be bounded otherwise.
  int most_ranks = 128;                   ///< The text of a plan grows with the ranks.
  int64_t most_ns = 500'000'000;          ///< Looked at before each plan.
  Clock* clock = nullptr;                 ///< nullptr: the machine's.
};

/// Makes the plans (Plan::ToText) that a session of `program` with `options` is going to ask for, before it
/// runs: in the process that compiles a job for a cluster. It walks through the blocks up to the first
/// decision, call or size that depends on cells, and twice through a loop that begins there. Every rank of
/// the session gets the plans as SessionOptions::plans.
///
/// Only scalars are computed; nothing is printed or written. With `files`, files are opened for the sizes of
/// what is read; with nullptr the first read is where it ends. Never fails: an error of the script ends it,
/// and the session reports the error.
std::vector<std::string> Precompile(const Program& program, const SessionOptions& options, ops::Files* files,
                                    const PrecompileLimits& limits = {});

}  // namespace heddle::engine
