// SPDX-License-Identifier: Apache-2.0
#include "engine/variables/host_value.h"

#include <utility>
#include <vector>

#include "compiler/parse/lexer.h"
#include "core/values/sizes.h"
#include "ops/cells/storage.h"

namespace heddle::engine {
namespace {

Status CheckName(const std::string& name) {
  const std::vector<compiler::Token> tokens = compiler::Tokenize(name);
  if (!tokens.empty() && tokens[0].kind == compiler::Token::Kind::kIdentifier && tokens[0].text == name)
    return OkStatus();
  return InvalidArgument("'{}' is no name of a variable", name)
      .WithNote("a name has letters, digits, '_' and '.', and begins with a letter");
}

Status CheckSize(const Shape& shape) {
  const int64_t most = shape.rows == 0 || shape.columns == 0 ? kMostLengthOfEmpty : kMostLength;
  if (shape.rows <= most && shape.columns <= most) return OkStatus();
  return InvalidArgument("{} is more than a matrix or frame of a script has", shape);
}

Result<Variable> ToVariable(const HostValue& value, ElementType element_type) {
  if (value.list != nullptr) {
    auto list = std::make_shared<ListOf<Variable>>();
    for (size_t i = 0; i < value.list->size(); ++i) {
      HEDDLE_ASSIGN_OR_RETURN(Variable element, ToVariable(value.list->elements[i], element_type));
      const bool has_name = !value.list->names.empty();
      HEDDLE_RETURN_IF_ERROR(list->Add(has_name ? value.list->names[i] : "", std::move(element)));
    }
    return Variable::OfList(std::move(list));
  }
  HEDDLE_RETURN_IF_ERROR(CheckSize(value.value.shape()));
  Variable variable;
  switch (value.value.kind()) {
    case Value::Kind::kScalar: return Variable::OfScalar(value.value.scalar());
    case Value::Kind::kMatrix: {
      HEDDLE_ASSIGN_OR_RETURN(const Matrix matrix, ToElementType(value.value.matrix(), element_type));
      variable.info = ValueInfo::OfMatrix(matrix.shape(), FormatOf(matrix.storage()));
      variable.info.element_type = element_type;
      variable.value = matrix;
      break;
    }
    case Value::Kind::kPanels: return Internal("panels are no input of a program");
    case Value::Kind::kFrame:
      variable.info = ValueInfo::OfFrame(value.value.frame().rows(), value.value.frame().schema());
      variable.value = value.value;
      break;
  }
  variable.distribution = Distribution::One();
  return variable;
}

}  // namespace

Result<Variable> ToVariable(const std::string& name, const HostValue& value, ElementType element_type) {
  HEDDLE_RETURN_IF_ERROR(CheckName(name));
  Result<Variable> variable = ToVariable(value, element_type);
  if (variable.ok() || variable.status().code() != StatusCode::kInvalidArgument) return variable;
  return InvalidArgument("input '{}': {}", name, variable.status().message());
}

Result<HostValue> ToHostValue(const Variable& variable) {
  HostValue value;
  if (variable.list == nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(value.value, ops::Decoded(variable.value));
    return value;
  }
  value.list = std::make_shared<ListOf<HostValue>>();
  value.list->names = variable.list->names;
  value.list->depth = variable.list->depth;
  for (const Variable& element : variable.list->elements) {
    HEDDLE_ASSIGN_OR_RETURN(HostValue given, ToHostValue(element));
    value.list->elements.push_back(std::move(given));
  }
  return value;
}

GivenVariable GivenOf(const std::string& name, const Variable& variable) {
  GivenVariable given{name, variable.info, std::nullopt};
  if (variable.info.IsScalar()) given.value = variable.value.scalar();
  return given;
}

}  // namespace heddle::engine
