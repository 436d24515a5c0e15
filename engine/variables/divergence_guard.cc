// SPDX-License-Identifier: Apache-2.0
#include "engine/variables/divergence_guard.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/hash.h"
#include "core/programs/text_format.h"
#include "core/text/quoted.h"

namespace heddle::engine {

DivergenceGuard::Step& DivergenceGuard::NextStep(int32_t block) {
  Step& step = last_[static_cast<size_t>(steps_++) % last_.size()];
  step.block = block;
  return step;
}

void DivergenceGuard::AddPlan(int32_t block, uint64_t key) {
  hash_ = FoldHash(FoldHash(hash_, static_cast<uint64_t>(block)), key);
  Step& step = NextStep(block);
  step.plan = key;
  step.decision.clear();
}

void DivergenceGuard::AddDecision(int32_t block, std::string_view bytes) {
  hash_ = FoldHash(FoldHash(hash_, static_cast<uint64_t>(block)), bytes);
  Step& step = NextStep(block);
  step.plan = 0;
  step.decision.assign(bytes);
}

std::string DivergenceGuard::Trace() const {
  std::string trace;
  const auto size = static_cast<int64_t>(last_.size());
  for (int64_t i = steps_ > size ? steps_ - size : 0; i < steps_; ++i) {
    const Step& step = last_[static_cast<size_t>(i % size)];
    if (!trace.empty()) trace += ", ";
    trace += step.plan != 0 ? fmt::format("block {} plan {:x}", step.block, step.plan)
                            : fmt::format("block {} decided {}", step.block, step.decision);
  }
  return trace;
}

void DivergenceGuard::AppendTo(std::string* text) const {
  text->append(fmt::format("guard {:#x} steps {}\n", hash_, steps_));
  for (const Step& step : last_) {
    text->append(fmt::format("step {} {:#x} ", step.block, step.plan));
    AppendQuoted(step.decision, text);
    text->push_back('\n');
  }
}

DivergenceGuard DivergenceGuard::Read(TextReader& reader) {
  DivergenceGuard guard;
  reader.Expect("guard");
  guard.hash_ = reader.Hexadecimal();
  reader.Expect("steps");
  guard.steps_ = std::max<int64_t>(reader.Integer(), 0);
  for (Step& step : guard.last_) {
    reader.Expect("step");
    step.block = reader.Integer32();
    step.plan = reader.Hexadecimal();
    step.decision = reader.Quoted();
  }
  return guard;
}

}  // namespace heddle::engine
