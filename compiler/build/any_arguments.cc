// SPDX-License-Identifier: Apache-2.0
// Checking a script whose arguments nobody knows (BuildOptions::any_arguments).
#include "compiler/build/body_builder.h"
#include "compiler/optimize/static/any_value.h"

namespace heddle::compiler {

// What the command line gives, or a caller of a function: its type is known at most.
NodeId BodyBuilder::AnyValue(DataType type, const SourceRange& range) {
  return block_.Read(NameOfAnyValue(type), AnyValueOf(type), At(range));
}

// A value that the compiler must know, and may know once the script has its arguments.
bool BodyBuilder::MayBeAnything(NodeId node) const {
  return program_.options.any_arguments && InfoOf(node).IsScalar();
}

bool BodyBuilder::IsOpenArgument(const std::string& name) const {
  return program_.options.any_arguments && !FindScriptArgument(name);
}

Block BodyBuilder::BuildAnyCall(const DmlFunction& function) {
  Block block = NewBlock(Block::Kind::kCall, function.definition->name_range);
  block.function = function.key;
  for (const ParameterDefinition& parameter : function.definition->parameters)
    block.arguments.emplace_back(parameter.name, NameOfAnyValue(parameter.data_type));
  block.results.resize(function.definition->results.size());
  return block;
}

}  // namespace heddle::compiler
