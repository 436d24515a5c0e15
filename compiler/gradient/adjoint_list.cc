// SPDX-License-Identifier: Apache-2.0
#include <array>
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

Status AdjointBody::ReverseListStep(const Block& step, std::vector<Block>* backward) {
  if (!IsAnyPresent(step.results)) return OkStatus();
  switch (step.operation) {
    case ListOperation::kMake: ReverseMake(step, backward); break;
    case ListOperation::kCopy: AddTo(ArgumentOf(step, "list"), AdjointName(step.results[0]), backward); break;
    case ListOperation::kRemove: ReverseRemove(step, backward); break;
    case ListOperation::kCbind:
    case ListOperation::kRbind: ReverseBind(step, backward); break;
    case ListOperation::kAsMatrix:
      if (IndexOf(step).empty()) {
        ReverseBind(step, backward);
        break;
      }
      [[fallthrough]];
    case ListOperation::kAsScalar: HEDDLE_RETURN_IF_ERROR(ReverseElement(step, backward)); break;
    case ListOperation::kSlice:
    case ListOperation::kAsList: HEDDLE_RETURN_IF_ERROR(ReversePart(step, backward)); break;
    case ListOperation::kAssign: HEDDLE_RETURN_IF_ERROR(ReverseAssign(step, backward)); break;
    case ListOperation::kAppend: HEDDLE_RETURN_IF_ERROR(ReverseAppend(step, backward)); break;
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
  const ListOperation operation = type.IsScalar()                     ? ListOperation::kAsScalar
                                  : type.data_type == DataType::kList ? ListOperation::kAsList
                                                                      : ListOperation::kAsMatrix;
  backward->push_back(ListStep(operation, {{"list", adjoint}, {"from", index}, {"to", index}}, given));
  AddTo(variable, given, backward);
}

// Elements get their parts of the adjoint.
void AdjointBody::ReverseMake(const Block& step, std::vector<Block>* backward) {
  for (size_t i = 0; i < step.arguments.size(); ++i) {
    const std::string& variable = step.arguments[i].second;
    if (!state_.activity->IsActive(variable)) continue;
    const std::string index = Number(static_cast<int64_t>(i + 1), backward);
    AddElementTo(variable, AdjointName(step.results[0]), index, backward);
  }
}

// An element that is taken out adds to that of the adjoint.
// Without an index, and of several, as.scalar() takes the first.
Status AdjointBody::ReverseElement(const Block& step, std::vector<Block>* backward) {
  const std::string list = ArgumentOf(step, "list");
  std::string index = ArgumentOf(step, "from");
  if (index.empty()) index = Number(1, backward);
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

// as.list(list[index]), list[from:to]: so does a list that is an element, or a part of the list.
Status AdjointBody::ReversePart(const Block& step, std::vector<Block>* backward) {
  const std::string list = ArgumentOf(step, "list");
  if (!state_.activity->IsActive(list)) return OkStatus();
  if (state_.present.insert(list).second) AddZeros(list, nullptr, backward);
  const bool is_slice = step.operation == ListOperation::kSlice;
  std::string from = ArgumentOf(step, "from"), to = ArgumentOf(step, "to");
  if (from.empty()) from = to = Number(1, backward);  // as.list(l) of a list of one
  const std::string adjoint = AdjointName(list), given = AdjointName(step.results[0]);
  const ValueInfo type = ValueInfo::OfDeclared(DataType::kList, ValueType::kUnknown);
  const std::string before = state_.NewName(type), sum = state_.NewName(type);
  backward->push_back(ListStep(step.operation, {{"list", adjoint}, {"from", from}, {"to", to}}, before));
  backward->push_back(ListStep(ListOperation::kSum, {{"list", before}, {"other", given}}, sum));
  const std::string elements = is_slice ? sum : Wrapped(sum, backward);
  backward->push_back(ListStep(
      ListOperation::kAssign, {{"list", adjoint}, {"from", from}, {"to", to}, {"value", elements}}, adjoint));
  return OkStatus();
}

std::string AdjointBody::Wrapped(const std::string& variable, std::vector<Block>* backward) {
  std::string list = state_.NewName(ValueInfo::OfDeclared(DataType::kList, ValueType::kUnknown));
  backward->push_back(ListStep(ListOperation::kMake, {{"", variable}}, list));
  return list;
}

// list[index] = value: the value gets that element of the adjoint, the old element nothing. A list gives its
// elements, one for each place.
Status AdjointBody::ReverseAssign(const Block& step, std::vector<Block>* backward) {
  const std::string list = ArgumentOf(step, "list"), index = IndexOf(step), value = ArgumentOf(step, "value");
  const std::string from = ArgumentOf(step, "from"), to = ArgumentOf(step, "to");
  const bool is_list = state_.TypeOf(value).data_type == DataType::kList;
  if (index.empty() && !is_list)
    return Refuse(step, "only a list can be assigned to several elements of a list");
  const std::string adjoint = AdjointName(step.results[0]);
  const ValueInfo type = ValueInfo::OfDeclared(DataType::kList, ValueType::kUnknown);
  const auto part_of = [&](const std::string& whole) {
    std::string part = state_.NewName(type);
    backward->push_back(ListStep(ListOperation::kSlice, {{"list", whole}, {"from", from}, {"to", to}}, part));
    return part;
  };
  if (state_.activity->IsActive(value)) {
    if (is_list)
      AddTo(value, part_of(adjoint), backward);
    else
      AddElementTo(value, adjoint, index, backward);
  }
  if (!state_.activity->IsActive(list)) return OkStatus();
  const std::string zeros = state_.NewName(type), rest = state_.NewName(type);
  backward->push_back(ListStep(ListOperation::kZeros, {{"list", part_of(list)}}, zeros));
  backward->push_back(ListStep(ListOperation::kAssign,
                               {{"list", adjoint}, {"from", from}, {"to", to}, {"value", zeros}}, rest));
  AddTo(list, rest, backward);
  return OkStatus();
}

// append(list, value): the last element of the adjoint is the value's.
Status AdjointBody::ReverseAppend(const Block& step, std::vector<Block>* backward) {
  const std::string list = ArgumentOf(step, "list"), value = ArgumentOf(step, "value");
  const ValueInfo type = ValueInfo::OfDeclared(DataType::kList, ValueType::kUnknown);
  const std::string last = state_.NewName(ValueInfo::OfScalar(ValueType::kInteger));
  const std::string rest = state_.NewName(type), removed = state_.NewName(type);
  const std::string adjoint = AdjointName(step.results[0]);
  backward->push_back(ListStep(ListOperation::kLength, {{"list", adjoint}}, last));
  if (state_.activity->IsActive(value)) {
    if (state_.TypeOf(value).data_type == DataType::kList) {
      const std::string given = state_.NewName(type);
      backward->push_back(ListStep(ListOperation::kAppended, {{"list", adjoint}, {"value", value}}, given));
      AddTo(value, given, backward);
    } else {
      AddElementTo(value, adjoint, last, backward);
    }
  }
  if (!state_.activity->IsActive(list)) return OkStatus();
  Block remove = ListStep(ListOperation::kRemove, {{"list", adjoint}, {"from", last}, {"to", last}}, rest);
  remove.results.push_back(removed);
  backward->push_back(std::move(remove));
  AddTo(list, rest, backward);
  return OkStatus();
}

// [rest, removed] = remove(list, index): each element gets its adjoint back from where it has gone.
void AdjointBody::ReverseRemove(const Block& step, std::vector<Block>* backward) {
  const std::string list = ArgumentOf(step, "list");
  if (!state_.activity->IsActive(list)) return;
  std::vector<std::pair<std::string, std::string>> arguments = step.arguments;
  constexpr std::array<const char*, 2> kParts = {"rest", "removed"};
  for (size_t i = 0; i < kParts.size(); ++i)
    if (state_.present.contains(step.results[i]))
      arguments.emplace_back(kParts[i], AdjointName(step.results[i]));
  const std::string whole = state_.NewName(ValueInfo::OfDeclared(DataType::kList, ValueType::kUnknown));
  backward->push_back(ListStep(ListOperation::kInserted, std::move(arguments), whole));
  AddTo(list, whole, backward);
}

// cbind(list), rbind(list), as.matrix(list[from:to]): elements get their rows or columns of the adjoint.
void AdjointBody::ReverseBind(const Block& step, std::vector<Block>* backward) {
  const std::string list = ArgumentOf(step, "list"), from = ArgumentOf(step, "from"),
                    to = ArgumentOf(step, "to"), given = AdjointName(step.results[0]);
  if (!state_.activity->IsActive(list)) return;
  const ListOperation operation =
      step.operation == ListOperation::kCbind ? ListOperation::kColumnsOf : ListOperation::kRowsOf;
  const auto new_list = [&] {
    return state_.NewName(ValueInfo::OfDeclared(DataType::kList, ValueType::kUnknown));
  };
  const std::string parts = new_list();
  if (from.empty()) {
    backward->push_back(ListStep(operation, {{"list", list}, {"value", given}}, parts));
    return AddTo(list, parts, backward);
  }
  const std::string adjoint = AdjointName(list), some = new_list(), before = new_list(), sum = new_list();
  if (state_.present.insert(list).second) AddZeros(list, nullptr, backward);
  backward->push_back(ListStep(ListOperation::kSlice, {{"list", list}, {"from", from}, {"to", to}}, some));
  backward->push_back(ListStep(operation, {{"list", some}, {"value", given}}, parts));
  backward->push_back(
      ListStep(ListOperation::kSlice, {{"list", adjoint}, {"from", from}, {"to", to}}, before));
  backward->push_back(ListStep(ListOperation::kSum, {{"list", before}, {"other", parts}}, sum));
  backward->push_back(ListStep(ListOperation::kAssign,
                               {{"list", adjoint}, {"from", from}, {"to", to}, {"value", sum}}, adjoint));
}

}  // namespace heddle::compiler
