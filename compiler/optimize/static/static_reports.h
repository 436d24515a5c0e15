// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/optimize/static/known_rounds.h"
#include "compiler/parse/diagnostics.h"
#include "core/call_site.h"
#include "core/programs/program.h"

namespace heddle::compiler {

/// What the static pass tells the user: errors that are certain, warnings of what may go wrong, each with the
/// calls on the way to its place.
class StaticReports {
 public:
  /// Without `diagnostics` nothing is reported.
  explicit StaticReports(Diagnostics* diagnostics) : diagnostics_(diagnostics) {}

  /// An error where `certain`, otherwise a warning. `may_be_unread`: it is about a value, which is not
  /// computed where nothing reads it.
  void Report(const Status& status, bool certain, bool may_be_unread = false);
  /// An error where `stop`, the first node that ends a block which every run comes to, is a stop() of
  /// Heddle's own library whose text is known: a function of the library says what is wrong with its
  /// arguments. A script's own stop() is no error of the script.
  void ReportStop(const Node& stop, const std::vector<std::optional<Scalar>>& values);
  /// Warns of calls whose last number rounding takes away: seq(0.05, 0.95, 0.05) ends at 0.9.
  void WarnOfLostNumbers(const Block& block, const std::vector<std::optional<Scalar>>& values);
  /// Warns of indexes that some round of a loop would find outside of their matrix.
  void CheckRounds(const Graph& graph, const std::vector<std::optional<Scalar>>& values,
                   const KnownRounds& rounds);

  /// Between the two nothing is reported. They nest.
  void Mute() { ++muted_; }
  void Unmute() { --muted_; }

  /// The calls that are walked, the innermost last.
  const std::vector<CallSite>& calls() const { return calls_; }
  void SetCalls(std::vector<CallSite> calls) { calls_ = std::move(calls); }
  void EnterCall(CallSite call) { calls_.push_back(std::move(call)); }
  void LeaveCall() { calls_.pop_back(); }

 private:
  Diagnostics* diagnostics_;
  int muted_ = 0;
  std::vector<CallSite> calls_;
  std::set<std::pair<int32_t, NodeId>> warned_;  // Calls of seq() whose warning was given, by block.
  std::set<std::string> reported_rounds_;        // Places.
};

}  // namespace heddle::compiler
