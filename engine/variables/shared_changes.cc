// SPDX-License-Identifier: Apache-2.0
#include "engine/variables/shared_changes.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/variables/merge_cells.h"
#include "engine/variables/merge_variable.h"

namespace heddle::engine {
namespace {

using List = ListOf<Variable>;

Variable OfMatrix(Matrix matrix) {
  Variable variable;
  variable.info = ValueInfo::OfMatrix(matrix.shape());
  variable.value = Value(std::move(matrix));
  return variable;
}

Variable OfColumn(Column column) {
  const auto schema = std::make_shared<const Schema>(Schema{.types = {column.type()}});
  Variable variable;
  variable.info = ValueInfo::OfFrame(column.rows(), schema);
  variable.value = Value(Frame(schema, {std::move(column)}));
  return variable;
}

Status AddTriple(Variable place, Variable second, Variable third, List* changes) {
  auto triple = std::make_shared<List>();
  for (Variable* part : {&place, &second, &third}) HEDDLE_RETURN_IF_ERROR(triple->Add("", std::move(*part)));
  return changes->Add("", Variable::OfList(std::move(triple)));
}

Status AddChanges(const Frame& before, const Frame& after, List* changes) {
  HEDDLE_ASSIGN_OR_RETURN(std::vector<ColumnChange> columns, ChangedCells(before, after));
  for (ColumnChange& change : columns)
    HEDDLE_RETURN_IF_ERROR(AddTriple(Variable::OfScalar(change.column), OfMatrix(std::move(change.rows)),
                                     OfColumn(std::move(change.cells)), changes));
  return OkStatus();
}

Status AddChanges(const List& before, const List& after, List* changes) {
  if (after.size() != before.size() || after.names.size() != before.names.size())
    return Internal("iterations of a parfor made lists of different lengths of one");
  for (size_t i = 0; i < before.size(); ++i) {
    const std::string name = after.names.empty() ? "" : after.names[i];
    const bool is_renamed = !after.names.empty() && name != before.names[i];
    if (!is_renamed && SharesValue(before.elements[i], after.elements[i])) continue;
    HEDDLE_RETURN_IF_ERROR(AddTriple(Variable::OfScalar(static_cast<int64_t>(i)), Variable::OfScalar(name),
                                     after.elements[i], changes));
  }
  return OkStatus();
}

// The parts of a change, as AddTriple made it.
Result<std::span<const Variable>> TripleOf(const Variable& change) {
  if (change.list == nullptr || change.list->size() != 3 || !change.list->elements[0].info.IsScalar())
    return Internal("a change of a parfor arrived damaged");
  return std::span<const Variable>(change.list->elements);
}

Variable OnEveryRank(const Variable& variable) {
  return WithValues(variable, [](Variable value) {
    value.distribution = Distribution::Each();
    return value;
  });
}

Result<Variable> WithFrameChanges(const Variable& before, std::span<const Variable> changes) {
  std::vector<ColumnChange> columns;
  for (const Variable& of_rank : changes)
    for (const Variable& change : of_rank.list->elements) {
      HEDDLE_ASSIGN_OR_RETURN(const std::span<const Variable> parts, TripleOf(change));
      if (!parts[1].info.IsMatrix() || !parts[2].info.IsFrame() || parts[2].value.frame().columns() != 1)
        return Internal("a change of a parfor arrived damaged");
      columns.push_back({.column = parts[0].value.scalar().AsInteger(),
                         .rows = parts[1].value.matrix(),
                         .cells = parts[2].value.frame().column(0)});
    }
  HEDDLE_ASSIGN_OR_RETURN(Frame frame, WithCells(before.value.frame(), columns));
  Variable result = before;
  result.source = nullptr;
  result.value = Value(std::move(frame));
  return result;
}

Result<Variable> WithListChanges(const Variable& before, std::span<const Variable> changes) {
  auto list = std::make_shared<List>(*before.list);
  for (const Variable& of_rank : changes)
    for (const Variable& change : of_rank.list->elements) {
      HEDDLE_ASSIGN_OR_RETURN(const std::span<const Variable> parts, TripleOf(change));
      const int64_t place = parts[0].value.scalar().AsInteger();
      if (place < 0 || static_cast<size_t>(place) >= list->size() || !parts[1].info.IsScalar())
        return Internal("an element that a parfor changed is not there");
      const auto i = static_cast<size_t>(place);
      list->elements[i] = OnEveryRank(parts[2]);
      if (!list->names.empty()) list->names[i] = parts[1].value.scalar().ToText();
      if (parts[2].list != nullptr) list->depth = std::max(list->depth, 1 + parts[2].list->depth);
    }
  Variable result = before;
  result.list = std::move(list);
  return result;
}

}  // namespace

void ForEachValue(const Variable& variable, const std::function<void(const Variable&)>& visit) {
  if (variable.list == nullptr) return visit(variable);
  for (const Variable& element : variable.list->elements) ForEachValue(element, visit);
}

Variable WithValues(const Variable& variable, const std::function<Variable(const Variable&)>& map) {
  if (variable.list == nullptr) return map(variable);
  auto list = std::make_shared<List>(*variable.list);
  for (Variable& element : list->elements) element = WithValues(element, map);
  Variable result = variable;
  result.list = std::move(list);
  return result;
}

Result<Variable> ChangesOf(const Variable& before, const Variable& after) {
  auto changes = std::make_shared<List>();
  if (after.info.data_type != before.info.data_type)
    return Internal("a {} of a parfor became a {}", Name(before.info.data_type), Name(after.info.data_type));
  HEDDLE_RETURN_IF_ERROR(before.list != nullptr
                             ? AddChanges(*before.list, *after.list, changes.get())
                             : AddChanges(before.value.frame(), after.value.frame(), changes.get()));
  return Variable::OfList(std::move(changes));
}

Result<Variable> WithChanges(const Variable& before, std::span<const Variable> changes) {
  for (const Variable& of_rank : changes)
    if (of_rank.list == nullptr) return Internal("a change of a parfor arrived damaged");
  return before.list != nullptr ? WithListChanges(before, changes) : WithFrameChanges(before, changes);
}

}  // namespace heddle::engine
