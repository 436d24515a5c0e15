// SPDX-License-Identifier: Apache-2.0
#include "compiler/optimize/known_variables.h"

#include <string>
#include <utility>
#include <vector>

#include "compiler/optimize/list_steps.h"
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

}  // namespace heddle::compiler
