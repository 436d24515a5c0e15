// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/program_scope.h"

#include <algorithm>
#include <set>
#include <utility>

#include "compiler/optimize/list_steps.h"
#include "core/programs/for_each_block.h"
#include "scheduler/plan_memory.h"

namespace heddle::engine {
namespace {

bool IsSameScalar(const Variable& a, const Variable& b) {
  return a.info.IsScalar() && b.info.IsScalar() && !a.is_placeholder && !b.is_placeholder &&
         compiler::IsSameValue(a.value.scalar(), b.value.scalar());
}

bool IsAlike(const Variable& a, const Variable& b) {
  if (!(a.info == b.info) || a.is_panels != b.is_panels || a.is_placeholder != b.is_placeholder) return false;
  return !a.info.IsScalar() || a.is_placeholder || IsSameScalar(a, b);
}

// Into the variable `name` of `scope`, which both have. True where sizes differ.
bool JoinVariable(const std::string& name, const ProgramScope& other, int64_t* last_value,
                  ProgramScope* scope) {
  const Variable& theirs = *other.frame.Find(name);
  Variable mine = *scope->frame.Find(name);
  if (!mine.info.IsTabular() || !theirs.info.IsTabular()) {
    if (!IsSameScalar(mine, theirs)) scope->Erase(name);
    return false;
  }
  const int64_t value = scope->values[name];
  if (value == other.values.at(name)) return false;
  const ValueInfo joined = compiler::JoinInfos(mine.info, theirs.info);
  const bool differs = !(joined == mine.info && joined == theirs.info);
  if (!joined.IsTabular()) {
    scope->Erase(name);
    return true;
  }
  mine.info = joined;
  mine.is_panels |= theirs.is_panels;
  if (!(mine.distribution == theirs.distribution)) mine.distribution = Distribution::One();
  scope->Set(name, std::move(mine), ++*last_value);
  return differs;
}

}  // namespace

void ProgramScope::Set(const std::string& name, Variable variable, int64_t value) {
  frame.Set(name, std::move(variable));
  values[name] = value;
}

void ProgramScope::Erase(const std::string& name) {
  frame.Erase(name);
  values.erase(name);
}

void Join(const ProgramScope& before, const ProgramScope& other, int64_t* last_value, ProgramScope* scope) {
  std::set<std::string> mine;
  for (const auto& [name, variable] : scope->frame.variables()) mine.insert(name);
  for (const std::string& name : mine) {
    if (other.frame.Find(name) != nullptr)
      JoinVariable(name, other, last_value, scope);
    else if (before.frame.Find(name) != nullptr || !scope->frame.Find(name)->info.IsTabular())
      scope->Erase(name);
  }
  for (const auto& [name, variable] : other.frame.variables())
    if (variable.info.IsTabular() && !mine.contains(name) && before.frame.Find(name) == nullptr)
      scope->Set(name, variable, other.values.at(name));
}

bool JoinBehindLoop(const ProgramScope& before, int64_t* last_value, ProgramScope* scope) {
  bool differs = false;
  for (const auto& [name, variable] : before.frame.variables())
    if (scope->frame.Find(name) != nullptr) differs |= JoinVariable(name, before, last_value, scope);
  return differs;
}

void ForgetScalars(const std::vector<Block>& blocks, ProgramScope* scope) {
  const auto forget = [&](const std::string& name) {
    const Variable* const variable = scope->frame.Find(name);
    if (variable != nullptr && !variable->info.IsTabular()) scope->Erase(name);
  };
  ForEachBlock(blocks, [&](const Block& block) { ForEachAssigned(block, forget); });
}

bool AreAlike(const std::vector<std::pair<std::string, Variable>>& a,
              const std::vector<std::pair<std::string, Variable>>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& one, const auto& other) {
    return one.first == other.first && IsAlike(one.second, other.second);
  });
}

int64_t HeldBytes(const Variable& variable, int32_t rank, int32_t ranks) {
  if (!variable.info.IsTabular() || !variable.info.IsSized() || !variable.IsHeldBy(rank)) return 0;
  ValueInfo info = variable.info;
  const Distribution& where = variable.distribution;
  if (where.IsSplit() && !where.split.cuts.empty()) {
    const int64_t length = where.split.End(rank) - where.split.Begin(rank);
    (where.split.axis == Axis::kRows ? info.shape.rows : info.shape.columns) = length;
  }
  const int64_t bytes = scheduler::BlockBytesOf(info);
  return where.IsSplit() && where.split.cuts.empty() ? bytes / ranks : bytes;
}

}  // namespace heddle::engine
