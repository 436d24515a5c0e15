// SPDX-License-Identifier: Apache-2.0
// The loops around the block that runs next, for who decides where copies of variables pay.
#include <algorithm>

#include "compiler/gradient/single_assignment.h"
#include "engine/control/control_program.h"

namespace heddle::engine {

OpenLoops ControlProgram::LoopsAround() {
  constexpr double kRoundsOfWhile = 10;
  OpenLoops loops;
  for (auto activation = stack_.rbegin(); activation != stack_.rend() && activation->kind != Kind::kCall;
       ++activation) {
    if (activation->kind == Kind::kSequence) continue;
    const auto [found, is_new] = assigned_in_.try_emplace(activation->owner);
    if (is_new) found->second = compiler::AssignedIn(activation->owner->body);
    loops.push_back({.assigned = &found->second,
                     .rounds = activation->kind == Kind::kWhile
                                   ? kRoundsOfWhile
                                   : static_cast<double>(activation->rounds) + 1});
  }
  std::reverse(loops.begin(), loops.end());
  return loops;
}

}  // namespace heddle::engine
