// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/call_site.h"
#include "core/status.h"
#include "ops/base/machine_constants.h"

namespace heddle::engine {

/// What one operator did in a session, all its tasks together.
struct OperatorStatistics {
  int64_t acts = 0;
  int64_t kernel_ns = 0;
  int64_t rows = 0;      ///< Rows computed on this rank.
  int64_t bytes_in = 0;  ///< Bytes pulled from other ranks.
};

/// What one fused operator did.
struct FusedOperatorStatistics {
  std::string label;  ///< Template, roots and their places in the script.
  int64_t calls = 0;
  int64_t kernel_ns = 0;
  int64_t bytes = 0;         ///< Read from its inputs and written to its result.
  bool interpreted = false;  ///< Some part of it had no machine code.
  bool operator==(const FusedOperatorStatistics&) const = default;
};

/// What the operators of one name at one place of a script did, where one way of calls led to it.
struct PlaceStatistics {
  /// A function that was called there.
  struct Call {
    std::string function, file;
    int32_t line = 0;  ///< Of the call.
    bool operator==(const Call&) const = default;
  };
  std::string
      name;  ///< "": what ran between operators there: scalars, control flow, waiting for other ranks.
  std::string file;
  int32_t line = 0, column = 0;
  std::vector<Call> calls;  ///< On the way there, the innermost first.
  int64_t acts = 0;
  int64_t ns = 0;
  int64_t rows = 0;
  int64_t bytes = 0;  ///< About what was read and written, of dense matrices.
  bool operator==(const PlaceStatistics&) const = default;
};

/// What one rank did in a job (-stats).
struct SessionStatistics {
  int rank = 0;
  int ranks = 1;
  int64_t seed = 0;  ///< Of the job: what unseeded rand() is drawn from.
  int64_t elapsed_ns = 0;
  int64_t plans_ahead = 0;       ///< That came with the job and were used.
  int64_t plans_compiled = 0;    ///< Misses of the plan cache: made while the script ran.
  int64_t planning_ns = 0;       ///< In which those were made.
  int64_t fusion_ns = 0;         ///< Of it, in which fused operators were chosen.
  int64_t fusion_costed = 0;     ///< In that time, whole and partial choices whose cost was computed.
  int64_t plans_reused = 0;      ///< Hits.
  int64_t scalar_blocks = 0;     ///< Blocks evaluated in place, without a plan.
  int64_t direct_parts = 0;      ///< Parts of blocks run directly (direct_program.h),
  int64_t direct_compiled = 0;   ///< for so many compiled ones.
  int64_t rows_held = 0;         ///< With several ranks: most rows that this rank held or computed at once.
  int64_t bytes_moved = 0;       ///< About what operators read and wrote; of CSR what fused operators did.
  int64_t matrix_operators = 0;  ///< Acts of operators that read or make matrices; a fused one counts once.
  int64_t bytes_sent = 0;        ///< Over links, payload.
  int64_t bytes_received = 0;
  int64_t bytes_shared = 0;         ///< Of those received, through memory that both workers see.
  int64_t messages_sent = 0;        ///< Control messages over links.
  int64_t code_compiled = 0;        ///< Regions of fused operators compiled to machine code.
  int64_t code_from_disk = 0;       ///< Regions whose code was in the cache on disk.
  int64_t code_ns = 0;              ///< Time of both.
  int64_t fusion_fallbacks = 0;     ///< Fused operators that had to be interpreted.
  int64_t peak_bytes = 0;           ///< Most matrix memory alive at once.
  int64_t planned_bytes = 0;        ///< The most that a plan said would be alive while it ran, and all else.
  int64_t spilled_bytes = 0;        ///< Of panels, to spill files,
  int64_t unspilled_bytes = 0;      ///< and from them.
  int64_t operators_ns = 0;         ///< Of a run that is recorded: in operators, of all threads together.
  ops::MachineConstants constants;  ///< That plans were chosen by.
  std::vector<FusedOperatorStatistics> fused;           ///< By descending time.
  std::map<std::string, OperatorStatistics> operators;  ///< By name; partial work as "sum.partial".
  std::map<std::string, PlaceStatistics> places;  ///< Of a run that is recorded, by a text for the place.
  /// Operators that this rank computed alone although an operand was split over all ranks: how often, by
  /// "order in line 5".
  std::map<std::string, int64_t> ran_whole;
  std::vector<std::string> compressions;  ///< What compress() did at each place (docs/compression.md).
  std::vector<std::string> recursions;  ///< What each body of a recursion runs (docs/recursion.md).
  std::map<std::string, int64_t> recursion_forms;  ///< How often functions ran, "f by levels" (likewise).

  /// The entry of `places` for operators of that name at a place, inside of `calls`, the innermost first.
  /// It stays where it is.
  PlaceStatistics& PlaceOf(const std::string& name, const SourcePosition& position,
                           const std::vector<CallSite>& calls);

  /// What blocks beside those of this session's own program did: operators, blocks, rows, bytes.
  void Add(const SessionStatistics& other);
};

/// By name, the counts of all ranks together, by descending time.
std::vector<std::pair<std::string, OperatorStatistics>> TotalOperators(
    const std::vector<SessionStatistics>& ranks);
/// By descending time. Calls and bytes of all ranks, time of the rank that took the longest, since they run
/// at once.
std::vector<FusedOperatorStatistics> TotalFused(const std::vector<SessionStatistics>& ranks);

/// A table a person reads, operators by descending time; at most `most_operators` of them. Of fused
/// operators: calls and bytes of all workers, time of the worker that took the longest, since they run at
/// once. Of recursions: the bodies of each worker that the workers before it have not.
std::string ToText(const std::vector<SessionStatistics>& ranks, int most_operators = 20);
/// One JSON object a rank: the fields above by name.
std::string ToJson(const SessionStatistics& statistics);
Result<SessionStatistics> ParseStatistics(const std::string& json);

}  // namespace heddle::engine
