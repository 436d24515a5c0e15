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

/// Where compiling ahead ends at the latest.
struct PrecompileLimits {
  int64_t most_bytes = int64_t{1} << 20;  ///< Of all texts.
  int most_plans = 64;                    ///< Well below what a plan cache keeps.
  int most_nodes = 20'000;                ///< Of a graph: how long one takes cannot be bounded otherwise.
  int most_ranks = 128;                   ///< The text of a plan grows with the ranks.
  int64_t most_ns = 500'000'000;          ///< Looked at before each plan.
  Clock* clock = nullptr;                 ///< nullptr: the machine's.
};

/// The plans (Plan::ToText) that a session of `program` with `options` is going to ask for, as far as that
/// can be known without running it: those of the blocks up to the first decision, call or size that only a
/// run tells, and of the first rounds of a loop that starts there. Every rank of the session takes them as
/// SessionOptions::plans.
///
/// Nothing is printed, written or computed but scalars. With `files` reads are looked up for their sizes;
/// with nullptr no file is touched and a read is where it ends. Never fails: an error ends it, and the
/// session is the one to tell.
std::vector<std::string> Precompile(const Program& program, const SessionOptions& options, ops::Files* files,
                                    const PrecompileLimits& limits = {});

}  // namespace heddle::engine
