// SPDX-License-Identifier: Apache-2.0
#include "engine/variables/variables.h"

#include <tuple>
#include <utility>

#include "ops/cells/storage.h"

namespace heddle::engine {

Variable Variable::OfScalar(Scalar scalar) {
  const ValueType type = scalar.type();
  return {.value = Value(std::move(scalar)),
          .distribution = Distribution::Each(),
          .info = ValueInfo::OfScalar(type)};
}

Variable Variable::OfList(std::shared_ptr<ListOf<Variable>> list) {
  return {.info = {DataType::kList, ValueType::kUnknown, Shape{0, 0}, Format::kDense},
          .list = std::move(list)};
}

Variable Variable::Placeholder(Distribution distribution, const ValueInfo& info) {
  return {.distribution = distribution, .info = info, .is_placeholder = true};
}

void Variable::SetOnHost(Value cells) {
  value = std::move(cells);
  residence = {};
  on_device = Value();
}

Status BringToHost(Variable* variable) {
  if (variable->residence == Residence()) return OkStatus();
  Value cells = variable->value;
  if (!variable->residence.on_host) {
    HEDDLE_ASSIGN_OR_RETURN(cells, ops::Decoded(std::move(cells)));
  }
  variable->SetOnHost(std::move(cells));
  return OkStatus();
}

const Variable* VariableTable::Find(std::string_view name) const {
  auto found = variables_.find(name);
  return found == variables_.end() ? nullptr : &found->second;
}

Variable* VariableTable::FindMutable(std::string_view name) {
  auto found = variables_.find(name);
  return found == variables_.end() ? nullptr : &found->second;
}

void VariableTable::Set(const std::string& name, Variable variable) {
  variables_.insert_or_assign(name, std::move(variable));
}

void VariableTable::SetScalar(const std::string& name, const Scalar& scalar) {
  const auto found = variables_.lower_bound(name);
  if (found == variables_.end() || found->first != name) {
    Variable& made = variables_
                         .emplace_hint(found, std::piecewise_construct, std::forward_as_tuple(name),
                                       std::forward_as_tuple())
                         ->second;
    made.value = Value(scalar);
    made.info = ValueInfo::OfScalar(scalar.type());
    return;
  }
  Variable& variable = found->second;
  if (!variable.info.IsScalar() || variable.is_placeholder) {
    variable = Variable::OfScalar(scalar);
    return;
  }
  variable.value = Value(scalar);
  variable.info.value_type = scalar.type();
}

void VariableTable::Erase(std::string_view name) {
  auto found = variables_.find(name);
  if (found != variables_.end()) variables_.erase(found);
}

Result<Variable> VariableTable::Take(std::string_view name) {
  auto found = variables_.find(name);
  if (found == variables_.end()) return Internal("the control program misses {}", name);
  Result<Variable> variable(std::move(found->second));
  variables_.erase(found);
  return variable;
}

bool IsOfType(const Variable& variable, DataType data_type, ValueType value_type) {
  if (data_type == DataType::kUnknown) return true;
  if (data_type != DataType::kScalar) return variable.info.data_type == data_type;
  return variable.info.IsScalar() &&
         (value_type == ValueType::kUnknown || variable.value.scalar().type() == value_type);
}

Result<Variable> ConvertTo(const Variable& variable, DataType data_type, ValueType value_type,
                           const std::string& what) {
  if (data_type == DataType::kScalar && variable.info.IsTabular())
    return FailedPrecondition("{} is declared as a scalar, but its value is a {} {}", what,
                              variable.info.shape, Name(variable.info.data_type))
        .WithNote("as.scalar(X) makes a scalar of a 1x1 matrix");
  const bool is_list = variable.info.data_type == DataType::kList;
  if (data_type != DataType::kUnknown && is_list != (data_type == DataType::kList))
    return FailedPrecondition("{} is declared as a {}, but its value is a {}", what, Name(data_type),
                              Name(variable.info.data_type));
  if (!variable.info.IsScalar() || data_type != DataType::kScalar) return variable;
  const Scalar& scalar = variable.value.scalar();
  if (value_type == ValueType::kUnknown || scalar.type() == value_type) return variable;
  if (value_type == ValueType::kString) return Variable::OfScalar(scalar.ToText());
  if (value_type == ValueType::kBoolean) return Variable::OfScalar(scalar.AsBoolean());
  if (scalar.IsString())
    return FailedPrecondition("{} is declared as {}, but its value is a string: \"{}\"", what,
                              Name(value_type), scalar.AsString());
  if (value_type == ValueType::kInteger) return Variable::OfScalar(scalar.AsInteger());
  return Variable::OfScalar(scalar.AsDouble());
}

}  // namespace heddle::engine
