// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "compiler/build/body_builder.h"

// [loss, dW, db] = gradient("f", ["W", "b"], ...): a call of f with the arguments behind the first two, which
// also gives the derivatives of f's first result (docs/gradient.md). compiler/gradient makes what is called.
namespace heddle::compiler {
namespace {

const Expression* TextLiteral(const Expression& expression) {
  const bool is_text = expression.kind == Expression::Kind::kLiteral && expression.literal.IsString();
  return is_text ? &expression : nullptr;
}

// The texts of "W", ["W", "b"] or list("W", "b"); empty where it is none of these.
std::vector<const Expression*> TextsOf(const Expression& expression) {
  std::vector<const Expression*> texts;
  if (const Expression* text = TextLiteral(expression)) return {text};
  for (const ExpressionPointer& operand : expression.operands) texts.push_back(TextLiteral(*operand));
  if (expression.kind == Expression::Kind::kCall && expression.name == "list")
    for (const Argument& argument : expression.arguments) texts.push_back(TextLiteral(*argument.value));
  const bool are_texts =
      std::none_of(texts.begin(), texts.end(), [](const Expression* t) { return t == nullptr; });
  return are_texts ? texts : std::vector<const Expression*>();
}

// Why there is no derivative by values of this type; "" where there is.
std::string WhyNot(const ParameterDefinition& parameter) {
  const bool is_double =
      parameter.value_type == ValueType::kDouble || parameter.value_type == ValueType::kUnknown;
  if (parameter.data_type == DataType::kMatrix || parameter.data_type == DataType::kList) return "";
  if (parameter.data_type == DataType::kScalar)
    return is_double ? "" : fmt::format("its values are of type {}", Name(parameter.value_type));
  return fmt::format("it is a {}", Name(parameter.data_type));
}

}  // namespace

// The name that a string gives, or the function's name itself; nullopt after an error.
std::optional<std::string> BodyBuilder::NameOfFunction(const Expression& name) {
  if (name.kind == Expression::Kind::kIdentifier && !scope_.contains(VariableFor(name.name)))
    return name.name;
  const NodeId node = BuildExpression(name);
  const std::optional<Scalar> text = block_.ValueOf(node);
  if (text && text->IsString()) return text->AsString();
  Error(name.range, "the first argument of gradient() must be the name of a function")
      .notes.emplace_back("it must be known when the script is compiled");
  return std::nullopt;
}

bool BodyBuilder::ReadGradientParameters(const Expression& by, const DmlFunction& function,
                                         CallChoice* choice) {
  const std::vector<const Expression*> texts = TextsOf(by);
  if (texts.empty()) {
    Error(by.range,
          fmt::format("the second argument of gradient() must name parameters of {}()", function.name))
        .notes.emplace_back("one in quotes, or several: [\"W\", \"b\"]");
    return false;
  }
  const std::vector<ParameterDefinition>& parameters = function.definition->parameters;
  for (const Expression* text : texts) {
    const std::string& name = text->literal.AsString();
    const auto found = std::find_if(parameters.begin(), parameters.end(),
                                    [&](const ParameterDefinition& p) { return p.name == name; });
    if (found == parameters.end()) {
      std::vector<std::string> names;
      for (const ParameterDefinition& parameter : parameters) names.push_back(parameter.name);
      Error(text->range, fmt::format("{}() has no parameter '{}'", function.name, name)).suggestion =
          SuggestName(name, names);
      return false;
    }
    if (const std::string why = WhyNot(*found); !why.empty()) {
      Error(text->range, fmt::format("gradient() gives no derivative by the parameter '{}' of {}(): {}", name,
                                     function.name, why))
          .notes.emplace_back(
              "there are derivatives by matrices, by scalars of type double and by lists of them");
      return false;
    }
    if (std::find(choice->by.begin(), choice->by.end(), &*found) != choice->by.end()) {
      Error(text->range, fmt::format("gradient() is asked twice for the derivative by '{}'", name));
      return false;
    }
    choice->by.push_back(&*found);
  }
  return true;
}

void BodyBuilder::ReportGradientCount(const Expression& call, const CallChoice& choice, size_t targets) {
  const DmlFunction& function = *choice.functions[0].second;
  const size_t results = function.definition->results.size();
  Error(call.name_range, fmt::format("gradient() returns {} results, {} variable{} assigned",
                                     ResultsOf(choice), targets, targets == 1 ? " is" : "s are"))
      .notes.push_back(fmt::format("they are the {} of {}() and a derivative by each parameter that is named",
                                   results == 1 ? "result" : "results", function.name));
}

std::optional<CallChoice> BodyBuilder::ChooseGradient(const Expression& call) {
  const std::vector<Argument>& arguments = call.arguments;
  if (arguments.size() < 2 || !arguments[0].name.empty() || !arguments[1].name.empty()) {
    Error(call.range, "gradient() takes the name of a function, names of parameters of it, and its arguments")
        .notes.emplace_back("[loss, dW] = gradient(\"f\", \"W\", X, W)");
    return std::nullopt;
  }
  CallChoice choice;
  for (size_t i = 2; i < arguments.size(); ++i) {
    HoistCalls(*arguments[i].value);
    choice.arguments.push_back(&arguments[i]);
  }
  built_arguments_.clear();
  const SourceRange& range = arguments[0].value->range;
  const std::optional<std::string> name = NameOfFunction(*arguments[0].value);
  if (!name) return std::nullopt;
  const Callee* callee = program_.FindCalleeNamed(file_, *name, At(range));
  if (callee == nullptr || callee->functions.empty()) {
    Error(range, fmt::format("gradient() finds no function '{}' that is written in DML", *name));
    return std::nullopt;
  }
  if (!ChooseEntryPoints(call, *callee, &choice)) return std::nullopt;
  if (choice.functions.size() > 1) {
    Error(range, fmt::format("which function '{}' is, only the run tells", *name))
        .notes.emplace_back("as.matrix(x) or as.scalar(x) says of which type its first argument is");
    return std::nullopt;
  }
  const DmlFunction& function = *choice.functions[0].second;
  const std::vector<ParameterDefinition>& results = function.definition->results;
  const bool gives_number = !results.empty() && results[0].data_type == DataType::kScalar &&
                            results[0].value_type == ValueType::kDouble;
  if (!gives_number) {
    Error(range, fmt::format("gradient() needs a function whose first result is a scalar of type double"))
        .notes.push_back(results.empty() ? fmt::format("{}() returns no result", function.name)
                                         : fmt::format("the result '{}' of {}() is another; sum(X) makes a "
                                                       "number of a matrix",
                                                       results[0].name, function.name));
    return std::nullopt;
  }
  if (!ReadGradientParameters(*arguments[1].value, function, &choice)) return std::nullopt;
  return choice;
}

}  // namespace heddle::compiler
