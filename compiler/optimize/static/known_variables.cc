// SPDX-License-Identifier: Apache-2.0
#include "compiler/optimize/static/known_variables.h"

#include <string>
#include <utility>
#include <vector>

#include "compiler/optimize/list_steps.h"
#include "core/programs/for_each_block.h"
#include "ops/scalar/evaluate_scalar.h"

namespace heddle::compiler {

bool JoinInto(State* state, const State& other) {
  std::vector<std::pair<std::string, LiveIn>> changes;
  state->ForEachDifference(other, [&](const std::string& name, const LiveIn* mine, const LiveIn* theirs) {
    if (mine == nullptr) {
      changes.emplace_back(name, LiveIn{theirs->info, std::nullopt, nullptr});
      return;
    }
    if (theirs == nullptr) {  // it may have no value at all on the other way
      if (mine->value || mine->list != nullptr)
        changes.emplace_back(name, LiveIn{mine->info, std::nullopt, nullptr});
      return;
    }
    LiveIn joined{JoinInfos(mine->info, theirs->info), std::nullopt, JoinLists(mine->list, theirs->list)};
    const bool is_same_value = IsSameValue(mine->value, theirs->value);
    if (mine->value && is_same_value) joined.value = mine->value;
    if (!(joined.info == mine->info) || (mine->value && !is_same_value) ||
        !IsSameList(joined.list, mine->list))
      changes.emplace_back(name, std::move(joined));
  });
  for (auto& [name, known] : changes) (*state)[name] = std::move(known);
  return !changes.empty();
}

void KeepTypeOnly(LiveIn* known) {
  known->value.reset();
  known->info = known->info.WithoutSize();
  known->list.reset();
}

LiveIn FromDeclaration(const Parameter& parameter) {
  LiveIn known;
  if (parameter.data_type == DataType::kList)
    known = UnknownList();
  else if (parameter.data_type != DataType::kUnknown)
    known.info = ValueInfo::OfDeclared(parameter.data_type, ValueType::kUnknown);
  return known;
}

LiveIn ToDeclared(const Parameter& parameter, LiveIn known) {
  if (parameter.data_type != DataType::kScalar || parameter.value_type == ValueType::kUnknown ||
      !known.info.IsScalar())
    return known;
  known.info.value_type = parameter.value_type;
  if (!known.value) return known;
  Result<Scalar> value = ops::CastScalar(*known.value, parameter.value_type, parameter.name);
  known.value.reset();
  if (value.ok()) known.value = *std::move(value);
  return known;
}

void ForgetAssigned(const std::vector<Block>& blocks, State* state) {
  const auto forget = [&](const std::string& name) {
    if (!state->contains(name)) return;
    LiveIn& known = (*state)[name];
    KeepTypeOnly(&known);
    known.info.value_type = known.info.IsMatrix() ? ValueType::kDouble : ValueType::kUnknown;
  };
  ForEachBlock(blocks, [&](const Block& block) { ForEachAssigned(block, forget); });
}

void AppendToKey(const LiveIn& known, std::string* key) {
  *key += fmt::format(":{}:{}:{}", static_cast<int>(known.info.data_type),
                      static_cast<int>(known.info.value_type), known.info.shape);
  if (known.value) *key += known.value->ToLiteral();
  if (known.list == nullptr) return;
  *key += '[';
  for (size_t i = 0; i < known.list->size(); ++i) {
    if (!known.list->names.empty()) *key += Scalar(known.list->names[i]).ToLiteral();
    AppendToKey(known.list->elements[i], key);
  }
  *key += ']';
}

bool IsExcluded(const CallCandidate& candidate, const Block& block, const State& state) {
  const LiveIn* const name = state.Find(block.selector);
  if (name != nullptr && name->value && name->value->ToText() != candidate.name) return true;
  const LiveIn* const first = state.Find(block.first_argument);
  if (first == nullptr) return false;
  DataType type = first->info.data_type;
  // For eval a list of arguments counts as a matrix.
  if (!block.selector.empty() && type == DataType::kList) type = DataType::kMatrix;
  return type != DataType::kUnknown && !candidate.Takes(type);
}

}  // namespace heddle::compiler
