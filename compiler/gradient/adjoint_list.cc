// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "compiler/blocks/block_builder.h"
#include "compiler/gradient/adjoint_body.h"
#include "compiler/gradient/gradient.h"

namespace heddle::compiler {
namespace {

// The variable of an argument; "" where the step has none of that name.
std::string ArgumentOf(const Block& step, std::string_view name) {
  for (const auto& [argument, variable] : step.arguments)
    if (argument == name) return variable;
  return "";
}

// The variable that is the index of a single element; "" where the step has no index, or one of several.
std::string IndexOf(const Block& step) {
  const std::string from = ArgumentOf(step, "from");
  return from == ArgumentOf(step, "to") ? from : "";
}

}  // namespace

Status AdjointBody::OfList(const Block& step, std::vector<Block>* backward) {
  if (!IsAnyPresent(step.results)) return OkStatus();
  switch (step.operation) {
    case ListOperation::kMake: OfMade(step, backward); break;
    case ListOperation::kCopy: AddTo(ArgumentOf(step, "list"), AdjointName(step.results[0]), backward); break;
    case ListOperation::kAsScalar:
    case ListOperation::kAsMatrix: HEDDLE_RETURN_IF_ERROR(OfElement(step, backward)); break;
    case ListOperation::kAssign: HEDDLE_RETURN_IF_ERROR(OfAssigned(step, backward)); break;
    case ListOperation::kAppend: HEDDLE_RETURN_IF_ERROR(OfAppended(step, backward)); break;
    default:
      return Refuse(step, fmt::format("the step '{}' on a list has no derivative", Name(step.operation)));
  }
  for (const std::string& result : step.results) state_.present.erase(result);
  return OkStatus();
}

std::string AdjointBody::Number(int64_t value, std::vector<Block>* blocks) {
  std::string name = state_.NewName(ValueInfo::OfScalar(ValueType::kInteger));
  BlockBuilder builder;
  builder.Assign(name, builder.Literal(Scalar(value), position_), position_);
  blocks->push_back(NewBlock(Block::Kind::kBasic));
  blocks->back().graph = builder.Finish();
  return name;
}

void AdjointBody::AddElementTo(const std::string& variable, const std::string& adjoint,
                               const std::string& index, std::vector<Block>* backward) {
  const ValueInfo type = TypeOnly(state_.TypeOf(variable));
  const std::string given = state_.NewName(type);
  backward->push_back(ListStep(type.IsScalar() ? ListOperation::kAsScalar : ListOperation::kAsMatrix,
                               {{"list", adjoint}, {"from", index}, {"to", index}}, given));
  AddTo(variable, given, backward);
}

// Elements get their parts of the adjoint.
void AdjointBody::OfMade(const Block& step, std::vector<Block>* backward) {
  for (size_t i = 0; i < step.arguments.size(); ++i) {
    const std::string& variable = step.arguments[i].second;
    if (!state_.activity->IsActive(variable)) continue;
    const std::string index = Number(static_cast<int64_t>(i + 1), backward);
    AddElementTo(variable, AdjointName(step.results[0]), index, backward);
  }
}

// An element that is taken out adds to that of the adjoint.
Status AdjointBody::OfElement(const Block& step, std::vector<Block>* backward) {
  const std::string list = ArgumentOf(step, "list"), index = IndexOf(step);
  if (index.empty()) return Refuse(step, "several elements of a list in one matrix have no derivative");
  if (!state_.activity->IsActive(list)) return OkStatus();
  if (state_.present.insert(list).second) AddZeros(list, nullptr, backward);
  const ValueInfo matrix = ValueInfo::OfMatrix(Shape());
  const std::string before = state_.NewName(matrix), sum = state_.NewName(matrix);
  const std::string adjoint = AdjointName(list);
  backward->push_back(
      ListStep(ListOperation::kAsMatrix, {{"list", adjoint}, {"from", index}, {"to", index}}, before));
  const ValueInfo type = TypeOnly(state_.TypeOf(step.results[0]));
  BlockBuilder builder;
  NodeId added = builder.Read(AdjointName(step.results[0]), {type, std::nullopt, nullptr}, position_);
  if (type.IsScalar()) added = builder.Add("as.matrix", {added}, position_);
  const NodeId so_far = builder.Read(before, {matrix, std::nullopt, nullptr}, position_);
  builder.Assign(sum, builder.Add("+", {so_far, added}, position_), position_);
  backward->push_back(NewBlock(Block::Kind::kBasic));
  backward->back().graph = builder.Finish();
  backward->push_back(ListStep(ListOperation::kAssign,
                               {{"list", adjoint}, {"from", index}, {"to", index}, {"value", sum}}, adjoint));
  return OkStatus();
}

// list[index] = value: the value gets that element of the adjoint, the old element nothing.
Status AdjointBody::OfAssigned(const Block& step, std::vector<Block>* backward) {
  const std::string list = ArgumentOf(step, "list"), index = IndexOf(step), value = ArgumentOf(step, "value");
  if (index.empty() || state_.TypeOf(value).data_type == DataType::kList)
    return Refuse(step, "only single elements of a list that are no lists can be assigned");
  const std::string adjoint = AdjointName(step.results[0]);
  if (state_.activity->IsActive(value)) AddElementTo(value, adjoint, index, backward);
  if (!state_.activity->IsActive(list)) return OkStatus();
  const ValueInfo matrix = ValueInfo::OfMatrix(Shape());
  const std::string old = state_.NewName(matrix), zeros = state_.NewName(matrix);
  backward->push_back(
      ListStep(ListOperation::kAsMatrix, {{"list", list}, {"from", index}, {"to", index}}, old));
  BlockBuilder builder;
  const NodeId cells = builder.Read(old, {matrix, std::nullopt, nullptr}, position_);
  const NodeId rows = builder.Add("nrow", {cells}, position_),
               columns = builder.Add("ncol", {cells}, position_);
  builder.Assign(zeros,
                 builder.Add("matrix", {builder.Literal(Scalar(0.0), position_), rows, columns}, position_),
                 position_);
  backward->push_back(NewBlock(Block::Kind::kBasic));
  backward->back().graph = builder.Finish();
  const std::string rest = state_.NewName(ValueInfo::OfDeclared(DataType::kList, ValueType::kUnknown));
  backward->push_back(ListStep(ListOperation::kAssign,
                               {{"list", adjoint}, {"from", index}, {"to", index}, {"value", zeros}}, rest));
  AddTo(list, rest, backward);
  return OkStatus();
}

// append(list, value): the last element of the adjoint is the value's.
Status AdjointBody::OfAppended(const Block& step, std::vector<Block>* backward) {
  const std::string list = ArgumentOf(step, "list"), value = ArgumentOf(step, "value");
  if (state_.TypeOf(value).data_type == DataType::kList)
    return Refuse(step, "a list that is appended to another has no derivative");
  const ValueInfo type = ValueInfo::OfDeclared(DataType::kList, ValueType::kUnknown);
  const std::string last = state_.NewName(ValueInfo::OfScalar(ValueType::kInteger));
  const std::string rest = state_.NewName(type), removed = state_.NewName(type);
  const std::string adjoint = AdjointName(step.results[0]);
  backward->push_back(ListStep(ListOperation::kLength, {{"list", adjoint}}, last));
  if (state_.activity->IsActive(value)) AddElementTo(value, adjoint, last, backward);
  if (!state_.activity->IsActive(list)) return OkStatus();
  Block remove = ListStep(ListOperation::kRemove, {{"list", adjoint}, {"from", last}, {"to", last}}, rest);
  remove.results.push_back(removed);
  backward->push_back(std::move(remove));
  AddTo(list, rest, backward);
  return OkStatus();
}

}  // namespace heddle::compiler
