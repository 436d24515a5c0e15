// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/environment/progress_board.h"
#include "core/environment/recorder.h"
#include "core/programs/program.h"
#include "engine/blocks/block_runner.h"

namespace heddle::engine {

/// What a control program says of its steps: to the board of the run, and to its record. Costs a comparison a
/// step where there is neither. Calls and loops are left in the order in which they were entered, the last
/// one first; those that an error ends are not left.
class RunWatch {
 public:
  explicit RunWatch(BlockRunner& blocks)
      : blocks_(blocks), board_(blocks.progress()), recorder_(blocks.recorder()) {}

  bool is_recording() const { return recorder_ != nullptr; }

  void Enter(const Block& block) {
    if (board_ != nullptr) board_->Enter(PositionOf(block));
  }
  void EnterLoop(const Block& block, uint64_t rounds) {
    if (board_ != nullptr) board_->EnterLoop(block.position, rounds);
    if (recorder_ != nullptr)
      Open(block, RecordedKind::kLoop, block.kind == Block::Kind::kWhile ? "while" : "for");
  }
  void NextRound() {
    if (board_ != nullptr) board_->NextRound();
    if (recorder_ != nullptr) ++open_.back().rounds;
  }
  void LeaveLoop() {
    if (board_ != nullptr) board_->LeaveLoop();
    if (recorder_ != nullptr) Close();
  }
  void EnterCall(const Block& block, const Function& function) {
    if (board_ != nullptr) ShowCall(block, function);
    if (recorder_ != nullptr) OpenCall(block, function);
  }
  void LeaveCall() {
    if (board_ != nullptr) ShowReturn();
    if (recorder_ != nullptr) CloseCall();
  }

  /// Of one step of the control program, where it is recorded: what takes time in it beside operators and
  /// plans.
  class Step {
   public:
    explicit Step(RunWatch& watch);
    /// The step is over; it was about `block`.
    void End(const Block& block);

   private:
    RunWatch& watch_;
    const int64_t begin_ns_, counted_ns_;
  };

 private:
  struct OpenFunction {
    const std::string* name;
    int32_t main_line;
  };
  struct OpenSite {
    uint32_t site;
    int64_t begin_ns;
    int64_t rounds = 1;
    OpenCalls calls_before;  // Of a call.
  };

  // Of straight-line blocks that of the first statement.
  static const SourcePosition& PositionOf(const Block& block) {
    return block.kind == Block::Kind::kBasic && !block.graph.nodes.empty()
               ? block.graph.nodes.front().position
               : block.position;
  }
  void ShowCall(const Block& block, const Function& function) {
    const int32_t line = functions_.empty() ? LineOfStatement(block.position) : functions_.back().main_line;
    functions_.push_back({&function.name, line});
    board_->EnterFunction(&function.name, line);
  }
  void ShowReturn() {
    functions_.pop_back();
    if (functions_.empty()) return board_->EnterFunction(nullptr, 0);
    board_->EnterFunction(functions_.back().name, functions_.back().main_line);
  }
  void Open(const Block& block, RecordedKind kind, const std::string& name);
  void Close();
  void OpenCall(const Block& block, const Function& function);
  void CloseCall();
  // What has its own places: operators and plans.
  int64_t CountedNs() const;

  BlockRunner& blocks_;
  ProgressBoard* const board_;
  Recorder* const recorder_;
  std::vector<OpenFunction> functions_;
  std::vector<OpenSite> open_;
};

}  // namespace heddle::engine
