// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/environment/progress_board.h"
#include "core/programs/program.h"
#include "engine/blocks/block_runner.h"
#include "engine/control/step_recorder.h"

namespace heddle::engine {

/// What a control program says of its steps: to the board of the run, and to its record. Calls and loops are
/// left in the order in which they were entered, the last one first; those that an error ends are not left.
class RunWatch {
 public:
  explicit RunWatch(BlockRunner& blocks) : board_(blocks.progress()) {
    if (blocks.recorder() != nullptr) steps_.emplace(blocks, *blocks.recorder());
    is_on_ = board_ != nullptr || steps_.has_value();
  }

  /// Whether anybody looks. If not, nothing else is to be called.
  bool is_on() const { return is_on_; }

  /// Steps follow; none follows until the next Begin.
  void Begin() {
    if (steps_) steps_->Begin();
  }
  void End() {
    if (steps_) steps_->End();
  }
  /// A step begins, which is about `block`: it enters it, or is at the end of its body. It is over.
  void BeginStep(const Block& block, bool is_end) {
    if (board_ != nullptr && !is_end) board_->Enter(PositionOf(block));
    if (steps_) steps_->BeginStep(block);
  }
  void EndStep() {
    if (steps_) steps_->EndStep();
  }
  void EnterLoop(const Block& block, uint64_t rounds) {
    if (board_ != nullptr) board_->EnterLoop(block.position, rounds);
    if (steps_) steps_->EnterLoop(block);
  }
  void NextRound() {
    if (board_ != nullptr) board_->NextRound();
    if (steps_) steps_->NextRound();
  }
  void LeaveLoop() {
    if (board_ != nullptr) board_->LeaveLoop();
    if (steps_) steps_->Leave();
  }
  void EnterCall(const Block& block, const Function& function) {
    if (board_ != nullptr) ShowCall(block, function);
    if (steps_) steps_->EnterCall(block, function);
  }
  void LeaveCall() {
    if (board_ != nullptr) ShowReturn();
    if (steps_) steps_->Leave();
  }

 private:
  struct OpenFunction {
    const std::string* name;
    int32_t main_line;
  };

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

  ProgressBoard* const board_;
  std::optional<StepRecorder> steps_;
  bool is_on_ = false;
  std::vector<OpenFunction> functions_;
};

}  // namespace heddle::engine
