// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <utility>

#include "compiler/blocks/block_builder.h"
#include "compiler/gradient/adjoint_body.h"
#include "compiler/gradient/gradient.h"

namespace heddle::compiler {

// What a round adds to adjoints of what the loop does not change need not be added in it: the rounds gather
// what their calls would be passed, and one call after the loop stands for all.
Result<bool> AdjointBody::DeferCall(const Block& call, const Block& backward_call, const AdjointPair& pair,
                                    std::vector<Block>* backward) {
  // Inside of the recursion the pair is still being made: its calls have results of each other.
  if (rounds_ == nullptr || !pair.is_recursive || !program_.functions.contains(pair.backward)) return false;
  const auto is_of_round = [&](const std::string& variable) { return rounds_->assigned.contains(variable); };
  std::set<std::string> varying;
  for (const auto& [parameter, variable] : call.arguments)
    if (is_of_round(variable)) varying.insert(parameter);
  for (const std::string& parameter : pair.of_parameters)
    if (varying.contains(parameter)) return false;

  HEDDLE_ASSIGN_OR_RETURN(const std::string function, find_rounds_(call, pair, varying));
  const ValueInfo list = ValueInfo::OfDeclared(DataType::kList, ValueType::kUnknown);
  const std::string gathered = state_.NewName(list), round = state_.NewName(list);
  Block after = NewBlock(Block::Kind::kCall);
  after.function = function;
  after.arguments = {{kRounds, gathered}};
  std::vector<std::string> of_round;
  for (const auto& [parameter, variable] : backward_call.arguments) {
    const bool is_passed = std::find(pair.passed.begin(), pair.passed.end(), parameter) != pair.passed.end();
    if (is_passed && !varying.contains(parameter))
      after.arguments.emplace_back(parameter, variable);
    else
      of_round.push_back(variable);
  }
  rounds_->before.push_back(ListStep(ListOperation::kMake, {}, gathered));
  Pack(round, of_round, backward);
  backward->push_back(ListStep(ListOperation::kAppend, {{"list", gathered}, {"value", round}}, gathered));
  for (const std::string& parameter : pair.of_parameters)
    for (const auto& [name, variable] : call.arguments)
      if (name == parameter) {
        after.results.push_back(state_.NewName(state_.TypeOf(variable)));
        rounds_->added.emplace_back(variable, after.results.back());
      }
  rounds_->after.push_back(std::move(after));
  return true;
}

// As if each round had made its call, from the first gathered to the last.
Result<Function> AdjointBody::WriteRounds(const Function& function, const AdjointPair& pair,
                                          const std::set<std::string>& varying) {
  position_ = function.position;
  const ValueInfo list = ValueInfo::OfDeclared(DataType::kList, ValueType::kUnknown);
  const ValueInfo number = ValueInfo::OfScalar(ValueType::kInteger);
  Function made;
  made.name = fmt::format("gradient of {}", function.name);
  made.position = function.position;
  made.derivative = {DerivativeRole::Kind::kRounds, pair.backward, {}};
  made.parameters.push_back({kRounds, DataType::kList, ValueType::kUnknown, {}});
  Block call = NewBlock(Block::Kind::kCall);
  call.function = pair.backward;
  std::vector<std::string> of_round;
  const auto pass = [&](const Parameter& parameter) {
    code_.types[parameter.name] = ValueInfo::OfDeclared(parameter.data_type, parameter.value_type);
    call.arguments.emplace_back(parameter.name, parameter.name);
  };
  for (const Parameter& parameter : program_.functions.at(pair.backward).parameters) {
    pass(parameter);
    const bool is_passed =
        std::find(pair.passed.begin(), pair.passed.end(), parameter.name) != pair.passed.end();
    if (is_passed && !varying.contains(parameter.name))
      made.parameters.push_back(parameter);
    else
      of_round.push_back(parameter.name);
  }
  std::vector<Block> sizes;
  for (const std::string& parameter : pair.of_parameters) {
    AddZeros(parameter, &sizes, &made.body);
    state_.present.insert(parameter);
    call.results.push_back(state_.NewName(state_.TypeOf(parameter)));
    const ValueInfo& type = state_.TypeOf(parameter);
    made.results.push_back({AdjointName(parameter),
                            type.data_type,
                            type.IsScalar() ? ValueType::kUnknown : type.value_type,
                            {}});
  }
  made.body.insert(made.body.begin(), std::make_move_iterator(sizes.begin()),
                   std::make_move_iterator(sizes.end()));
  const std::string count = state_.NewName(number), round = state_.NewName(list);
  made.body.push_back(ListStep(ListOperation::kLength, {{"list", kRounds}}, count));
  Block loop = NewBlock(Block::Kind::kFor);
  loop.variable = state_.NewName(number);
  loop.has_increment = true;
  BlockBuilder bounds;
  bounds.Assign(Block::kFrom, bounds.Literal(Scalar(1), position_), position_);
  bounds.Assign(Block::kTo, bounds.Read(count, {number, std::nullopt, nullptr}, position_), position_);
  bounds.Assign(Block::kIncrement, bounds.Literal(Scalar(1), position_), position_);
  loop.graph = bounds.Finish();
  loop.body.push_back(ListStep(ListOperation::kAsList,
                               {{"list", kRounds}, {"from", loop.variable}, {"to", loop.variable}}, round));
  HEDDLE_RETURN_IF_ERROR(Unpack(round, of_round, &loop.body));
  const std::vector<std::string> given = call.results;
  loop.body.push_back(std::move(call));
  for (size_t i = 0; i < given.size(); ++i) AddTo(pair.of_parameters[i], given[i], &loop.body);
  made.body.push_back(std::move(loop));
  return made;
}

}  // namespace heddle::compiler
