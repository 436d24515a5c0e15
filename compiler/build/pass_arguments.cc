// SPDX-License-Identifier: Apache-2.0
#include "compiler/build/body_builder.h"
#include "core/call_site.h"
#include "core/programs/argument_presence.h"
#include "core/text/double_text.h"

// The arguments of calls of functions written in DML: values of the types that the parameters declare.
namespace heddle::compiler {

std::string BodyBuilder::PassNode(NodeId node, const SourceRange& range) {
  const std::string temporary = NewTemporary();
  block_.Assign(temporary, node, At(range));
  return temporary;
}

std::string BodyBuilder::PassArgument(const Expression& call, const DmlFunction& function,
                                      const ParameterDefinition& parameter, const Argument& argument) {
  const Expression& expression = *argument.value;
  if (IsList(expression)) {
    if (parameter.data_type != DataType::kList && parameter.data_type != DataType::kUnknown)
      Error(expression.range, fmt::format("the argument '{}' of {}() must be a {}, not a list",
                                          parameter.name, call.name, Name(parameter.data_type)))
          .notes.push_back(fmt::format("as.{}(l[i]) takes an element of a list", Name(parameter.data_type)));
    return PassOperand(expression);
  }
  const auto built = built_arguments_.find(&expression);
  const NodeId given = built != built_arguments_.end() ? built->second : BuildExpression(expression);
  const NodeId value = ConvertArgument(call, function, parameter, given, expression.range);
  // A variable that needs no conversion is passed as it is.
  if (value == given && expression.kind == Expression::Kind::kIdentifier &&
      scope_.contains(VariableFor(expression.name)))
    return VariableFor(expression.name);
  if (value == given && hoisted_.contains(&expression)) return hoisted_[&expression];
  return PassNode(value, expression.range);
}

// Defaults are evaluated by the caller, but of all variables they see only the parameters before them, which
// `passed` are.
std::string BodyBuilder::PassDefault(const Expression& call, const DmlFunction& function,
                                     const ParameterDefinition& parameter,
                                     const std::vector<std::pair<std::string, std::string>>& passed) {
  const Expression& expression = *parameter.default_value;
  Scope scope = std::exchange(scope_, {});
  auto renamed = std::exchange(renamed_, {});
  for (const auto& [name, variable] : passed) {
    renamed_[name] = variable;
    const auto known = scope.find(variable);  // a temporary of the block is known to the block
    scope_[variable] = known != scope.end() ? known->second : Variable();
  }
  const int32_t file = std::exchange(file_, function.file);
  const std::string* path =
      std::exchange(path_, &program_.scripts.files[static_cast<size_t>(function.file)].path);
  ForbidCalls(expression, "the default of a parameter");
  HoistCalls(expression);
  std::string result;
  if (IsList(expression))
    result = PassOperand(expression);
  else
    result =
        PassNode(ConvertArgument(call, function, parameter, BuildExpression(expression), expression.range),
                 expression.range);
  scope_ = std::move(scope);
  renamed_ = std::move(renamed);
  file_ = file;
  path_ = path;
  return result;
}

std::vector<Block> BodyBuilder::BuildForList(const DmlFunction& function) {
  const FunctionDefinition& definition = *function.definition;
  Expression call;
  call.name = function.name;
  call.range = definition.name_range;
  Block inner = NewBlock(Block::Kind::kCall, call.range);
  inner.function = function.key;
  for (const ParameterDefinition& parameter : definition.parameters) {
    LiveIn declared;
    declared.info = ValueInfo::OfDeclared(parameter.data_type, parameter.value_type);
    if (HasComputedDefault(parameter)) {
      const SourceRange& range = parameter.default_value->range;
      LiveIn presence;
      presence.info = ValueInfo::OfScalar(ValueType::kBoolean);
      Block choice = NewBlock(Block::Kind::kIf, range);
      block_.Assign(Block::kPredicate, block_.Read(PresenceOf(parameter.name), presence, At(range)),
                    At(range));
      choice.graph = block_.Finish();
      std::vector<Block> before = std::exchange(blocks_, {});
      const bool is_list = IsList(*parameter.default_value);
      const std::string value = PassDefault(call, function, parameter, inner.arguments);
      if (is_list) {
        Block copy = NewBlock(Block::Kind::kList, range);
        copy.operation = ListOperation::kCopy;
        copy.arguments.emplace_back("list", value);
        EmitStep(std::move(copy), {parameter.name}, range);
      } else {
        Define(parameter.name, block_.Read(value, declared, At(range)), range);
        Flush();
      }
      choice.otherwise = std::exchange(blocks_, std::move(before));
      blocks_.push_back(std::move(choice));
    }
    DefineAs(parameter.name, std::move(declared), parameter.name_range);
    inner.arguments.emplace_back(parameter.name, parameter.name);
  }
  for (const ParameterDefinition& result : definition.results) inner.results.push_back(result.name);
  blocks_.push_back(std::move(inner));
  return std::move(blocks_);
}

// Functions of Heddle's own library take what they declare: a matrix for a matrix, a number for a number.
// Others may use what they get as what it is. False after an error.
bool BodyBuilder::TakesDeclared(const Expression& call, const ParameterDefinition& parameter, NodeId value,
                                const SourceRange& range) {
  const ValueInfo info = InfoOf(value);
  const auto refuse = [&](std::string_view wanted, std::string_view given) -> Diagnostic& {
    return Error(range, fmt::format("the argument '{}' of {}() must be a {}, not {}", parameter.name,
                                    call.name, wanted, given));
  };
  const bool is_tabular = parameter.data_type == DataType::kMatrix || parameter.data_type == DataType::kFrame;
  if (is_tabular && info.data_type != DataType::kUnknown && info.data_type != parameter.data_type) {
    refuse(Name(parameter.data_type), fmt::format("a {}", Name(info.data_type)))
        .notes.push_back(fmt::format("as.{}(x) makes one of it", Name(parameter.data_type)));
    return false;
  }
  const std::optional<Scalar> known = block_.ValueOf(value);
  const bool is_number =
      parameter.data_type == DataType::kScalar &&
      (parameter.value_type == ValueType::kDouble || parameter.value_type == ValueType::kInteger);
  if (is_number && known && known->IsString() && !ParseDouble(known->AsString())) {
    refuse("number", fmt::format("\"{}\"", known->AsString()));
    return false;
  }
  return true;
}

// Scalars become the value type that the parameter declares.
NodeId BodyBuilder::ConvertArgument(const Expression& call, const DmlFunction& function,
                                    const ParameterDefinition& parameter, NodeId value,
                                    const SourceRange& range) {
  const ValueInfo info = InfoOf(value);
  if (program_.IsHeddles(function.file) && !TakesDeclared(call, parameter, value, range))
    return ErrorNode(range);
  if (parameter.data_type == DataType::kList && info.data_type != DataType::kUnknown)
    Error(range, fmt::format("the argument '{}' of {}() must be a list, not a {}", parameter.name, call.name,
                             Name(info.data_type)))
        .notes.push_back("list(x) makes a list of one element");
  if (parameter.data_type != DataType::kScalar) return value;
  if (info.IsTabular()) {
    Error(range, fmt::format("the argument '{}' of {}() must be a scalar, not a {}", parameter.name,
                             call.name, Name(info.data_type)))
        .notes.push_back("as.scalar(X) makes a scalar of a 1x1 matrix");
    return ErrorNode(range);
  }
  if (!info.IsScalar() || info.value_type == parameter.value_type) return value;
  switch (parameter.value_type) {
    case ValueType::kUnknown: return value;
    case ValueType::kDouble: return block_.Add("as.double", {value}, At(range));
    case ValueType::kInteger: return block_.Add("as.integer", {value}, At(range));
    case ValueType::kBoolean: return block_.Add("as.logical", {value}, At(range));
    case ValueType::kString:
      return block_.Add("+", {block_.Literal(Scalar(""), At(range)), value}, At(range));
  }
  return value;
}

}  // namespace heddle::compiler
