// SPDX-License-Identifier: Apache-2.0
// The loops around the block that runs next, for who decides where copies of variables pay.
#include <algorithm>

#include "compiler/gradient/single_assignment.h"
#include "engine/control/control_program.h"

namespace heddle::engine {

namespace {

constexpr double kRoundsOfWhile = 10;

}  // namespace

OpenLoop ControlProgram::LoopOf(const Block& loop, double rounds) {
  const auto [found, is_new] = assigned_in_.try_emplace(&loop);
  if (is_new) found->second = compiler::AssignedIn(loop.body);
  return {.assigned = &found->second, .rounds = rounds};
}

void ControlProgram::TellLoops(const Block* entered) {
  if (options_.devices == "cpu") return;
  OpenLoops loops;
  if (entered != nullptr) loops.push_back(LoopOf(*entered, kRoundsOfWhile));
  for (auto activation = stack_.rbegin(); activation != stack_.rend() && activation->kind != Kind::kCall;
       ++activation) {
    if (activation->kind == Kind::kSequence) continue;
    const double rounds =
        activation->kind == Kind::kWhile ? kRoundsOfWhile : static_cast<double>(activation->rounds) + 1;
    loops.push_back(LoopOf(*activation->owner, rounds));
  }
  std::reverse(loops.begin(), loops.end());
  blocks_.SetLoops(std::move(loops));
}

}  // namespace heddle::engine
