// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "core/call_site.h"
#include "core/source_position.h"

namespace heddle {

/// The line that a place stands for in the function which its statement belongs to: that of the outermost
/// call that a body was put in place of. 0: not known.
inline int32_t LineOfStatement(const SourcePosition& position) {
  const SourcePosition* outermost = &position;
  while (outermost->call != nullptr) outermost = &outermost->call->position;
  return outermost->line;
}

/// What a run is at, as plain data.
struct ProgressState {
  struct Loop {
    int32_t line = 0;
    uint64_t number = 0;  ///< Tells one entry of a loop from the next.
    uint64_t round = 0;   ///< From 0.
    uint64_t rounds = 0;  ///< 0: not known.
    bool operator==(const Loop&) const = default;
  };
  std::string file;          ///< Of the statement;
  int32_t line = 0;          ///< 0: nothing runs.
  std::string function;      ///< In which it is; "": in the script itself.
  int32_t main_line = 0;     ///< Of the script: of the statement, or of the call that led to it.
  std::vector<Loop> loops;   ///< The outermost first.
  int64_t rows = 0;          ///< Made by operators so far.
  uint64_t plan = 0;         ///< Number of the plan that runs; 0: none.
  int64_t plan_cost_ns = 0;  ///< How long its operators take by the cost model; 0: not known,
  int64_t plan_done_ns = 0;  ///< and those of them that are through.
  bool operator==(const ProgressState&) const = default;
};

/// Where a run says what it is at, for one who looks now and then. Those who run write with single stores,
/// some tens of nanoseconds for a step; the one thread of the control program alone calls what is marked (C).
class ProgressBoard {
 public:
  static constexpr size_t kMostLoops = 4;  ///< Loops within loops that are told.

  /// (C) A statement begins. `position` lives until Close.
  void Enter(const SourcePosition& position) {
    position_.store(&position, std::memory_order_relaxed);
    act_line_.store(0, std::memory_order_relaxed);
  }
  /// (C) What follows is in this function, which a call in line `main_line` of the script led to; nullptr: in
  /// the script itself. `function` lives until Close.
  void EnterFunction(const std::string* function, int32_t main_line) {
    main_line_.store(main_line, std::memory_order_relaxed);
    function_.store(function, std::memory_order_relaxed);
  }
  /// (C) A loop begins; 0 rounds: nobody knows how many.
  void EnterLoop(const SourcePosition& position, uint64_t rounds) {
    const size_t depth = depth_.load(std::memory_order_relaxed);
    if (depth < kMostLoops) {
      LoopCells& loop = loops_[depth];
      loop.line.store(position.line, std::memory_order_relaxed);
      loop.number.store(++entered_, std::memory_order_relaxed);
      loop.round.store(0, std::memory_order_relaxed);
      loop.rounds.store(rounds, std::memory_order_relaxed);
    }
    depth_.store(depth + 1, std::memory_order_relaxed);
  }
  /// (C) The next round of the innermost loop.
  void NextRound() {
    const size_t depth = depth_.load(std::memory_order_relaxed);
    if (depth > 0 && depth <= kMostLoops) Increase(loops_[depth - 1].round, uint64_t{1});
  }
  /// (C) The rounds of the innermost loop are so many.
  void SetRounds(uint64_t rounds) {
    const size_t depth = depth_.load(std::memory_order_relaxed);
    if (depth > 0 && depth <= kMostLoops) loops_[depth - 1].rounds.store(rounds, std::memory_order_relaxed);
  }
  /// (C)
  void LeaveLoop() { depth_.store(depth_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed); }
  /// A round of the innermost loop is over, one of several that run at once. Any thread.
  void EndRound() {
    const size_t depth = depth_.load(std::memory_order_relaxed);
    if (depth > 0 && depth <= kMostLoops) loops_[depth - 1].round.fetch_add(1, std::memory_order_relaxed);
  }

  /// (C) A plan begins, and ends.
  void BeginPlan(int64_t cost_ns) {
    done_ns_.store(0, std::memory_order_relaxed);
    cost_ns_.store(cost_ns, std::memory_order_relaxed);
    plan_.store(++plans_, std::memory_order_relaxed);
  }
  void EndPlan() { plan_.store(0, std::memory_order_relaxed); }
  /// An operator begins, of the statement in this line (0: not known). Any thread.
  void BeginAct(int32_t line) { act_line_.store(line, std::memory_order_relaxed); }
  /// An operator is through: rows that it made, what it was expected to take. Any thread.
  void AddAct(int64_t rows, int64_t cost_ns) {
    rows_.fetch_add(rows, std::memory_order_relaxed);
    if (cost_ns > 0) done_ns_.fetch_add(cost_ns, std::memory_order_relaxed);
  }

  /// Nothing that was entered is looked at any more. Before it goes.
  void Close() {
    const std::lock_guard lock(mutex_);
    position_.store(nullptr, std::memory_order_relaxed);
    function_.store(nullptr, std::memory_order_relaxed);
    depth_.store(0, std::memory_order_relaxed);
    plan_.store(0, std::memory_order_relaxed);
    is_closed_ = true;
  }

  /// What it is at about now: parts of it may be of one moment and parts of the next. Any thread.
  ProgressState Read() const {
    ProgressState state;
    const std::lock_guard lock(mutex_);
    if (is_closed_) return state;
    if (const SourcePosition* position = position_.load(std::memory_order_relaxed)) {
      state.file = position->file;
      state.line = position->line;
      state.main_line = LineOfStatement(*position);
    }
    if (const std::string* function = function_.load(std::memory_order_relaxed)) {
      state.function = *function;
      state.main_line = main_line_.load(std::memory_order_relaxed);
    }
    if (const int32_t line = act_line_.load(std::memory_order_relaxed); line > 0 && state.line > 0) {
      state.line = line;
      if (state.function.empty()) state.main_line = line;
    }
    const size_t depth = depth_.load(std::memory_order_relaxed);
    for (size_t i = 0; i < depth && i < kMostLoops; ++i)
      state.loops.push_back({.line = loops_[i].line.load(std::memory_order_relaxed),
                             .number = loops_[i].number.load(std::memory_order_relaxed),
                             .round = loops_[i].round.load(std::memory_order_relaxed),
                             .rounds = loops_[i].rounds.load(std::memory_order_relaxed)});
    state.rows = rows_.load(std::memory_order_relaxed);
    state.plan = plan_.load(std::memory_order_relaxed);
    state.plan_cost_ns = cost_ns_.load(std::memory_order_relaxed);
    state.plan_done_ns = done_ns_.load(std::memory_order_relaxed);
    return state;
  }

 private:
  struct LoopCells {
    std::atomic<int32_t> line{0};
    std::atomic<uint64_t> number{0}, round{0}, rounds{0};
  };
  // By the one thread that writes.
  template <typename Number>
  static void Increase(std::atomic<Number>& number, Number by) {
    number.store(number.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  mutable std::mutex mutex_;  // Between one who looks and the end of what is looked at.
  bool is_closed_ = false;
  std::atomic<const SourcePosition*> position_{nullptr};
  std::atomic<const std::string*> function_{nullptr};
  std::atomic<int32_t> main_line_{0}, act_line_{0};
  std::atomic<size_t> depth_{0};
  std::array<LoopCells, kMostLoops> loops_;
  uint64_t entered_ = 0, plans_ = 0;  // Of the thread of the control program.
  std::atomic<int64_t> rows_{0}, cost_ns_{0}, done_ns_{0};
  std::atomic<uint64_t> plan_{0};
};

}  // namespace heddle
