// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>

#include "compiler/build/body_builder.h"
#include "compiler/build/file_options.h"
#include "ops/io/formats/file_format.h"

// read, write, print, stop and assert.
namespace heddle::compiler {
namespace {

bool Contains(std::span<const std::string> options, std::string_view name) {
  return std::find(options.begin(), options.end(), name) != options.end();
}

DataType TypeOfRead(const std::vector<std::pair<std::string, Scalar>>& attributes) {
  for (const auto& [name, value] : attributes)
    if (name == "data_type") return ops::FindDataTypeOfFile(value.ToText());
  return DataType::kUnknown;  // metadata of the file may say it
}

}  // namespace

NodeId BodyBuilder::BuildRead(const Expression& call) {
  const std::vector<std::string> options = FileOptionsOf("read");
  std::vector<std::pair<std::string, Scalar>> attributes;
  NodeId path_node = kNoNode;
  std::optional<Scalar> path;  // where it is known when the script is compiled
  bool ok = true;
  bool is_known = true;  // false: an argument may be anything
  if (call.name == "readMM") attributes.emplace_back("format", Scalar("mm"));
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const Argument& argument = call.arguments[i];
    if (i == 0 && argument.name.empty()) {
      path_node = BuildExpression(*argument.value);
      path = block_.ValueOf(path_node);
      is_known = path || !MayBeAnything(path_node);
      if (InfoOf(path_node).IsTabular() || (path && !path->IsString())) {
        Error(argument.value->range, fmt::format("the path of {}() must be a string", call.name));
        ok = false;
      }
    } else if (!Contains(options, argument.name)) {
      if (argument.name.empty()) {
        Error(argument.value->range, fmt::format("{}() takes one path; its options are named", call.name));
      } else {
        Error(argument.name_range, fmt::format("{}() has no parameter '{}'", call.name, argument.name))
            .suggestion = SuggestName(argument.name, options);
      }
      ok = false;
    } else if (std::optional<Scalar> value = ConstantOf(call, argument, argument.name)) {
      if (argument.name == "data_type" && value->IsString() &&
          ops::FindDataTypeOfFile(value->AsString()) == DataType::kUnknown) {
        program_.ReportUnimplemented(*path_, argument.value->range,
                                     fmt::format("reading a {} is", value->AsString()));
        ok = false;
      }
      attributes.emplace_back(argument.name, *std::move(value));
    } else {
      is_known = false;
    }
  }
  if (call.arguments.empty() || !call.arguments[0].name.empty()) {
    Error(call.range, fmt::format("the argument 'path' of {}() is missing", call.name));
    ok = false;
  }
  if (!ok || (!is_known && !program_.options.any_arguments)) return ErrorNode(call.range);
  if (!is_known) {
    for (const auto& [name, value] : attributes)
      if (name == "format")
        program_.diagnostics.AddStatus(ops::ParseFileFormat(value.ToText()).status().At(At(call.name_range)));
    return AnyValue(TypeOfRead(attributes), call.range);
  }
  const bool says_type = std::any_of(attributes.begin(), attributes.end(),
                                     [](const auto& attribute) { return attribute.first == "data_type"; });
  if (path) {
    AddTypeInMetadata(path->AsString(), &attributes);
    path_node = block_.Literal(*path, At(call.arguments[0].value->range));
  } else if (!says_type) {
    // The type of a value is known when a script is compiled, whatever metadata say when it runs.
    attributes.emplace_back("data_type", Scalar(std::string(Name(DataType::kMatrix))));
  }
  for (const auto& [name, value] : attributes) {
    if (name != "data_type" || ops::FindDataTypeOfFile(value.ToText()) != DataType::kList) continue;
    Error(call.range, fmt::format("{} is a list; a list is read by name = read(\"path\", data_type=\"list\")",
                                  path ? fmt::format("'{}'", path->AsString()) : "what is read"));
    return ErrorNode(call.range);
  }
  return block_.Add("read", {path_node}, At(call.name_range), std::move(attributes));
}

void BodyBuilder::AddTypeInMetadata(const std::string& path,
                                    std::vector<std::pair<std::string, Scalar>>* attributes) const {
  const auto said = [&](std::string_view name) {
    return std::any_of(attributes->begin(), attributes->end(),
                       [&](const auto& attribute) { return attribute.first == name; });
  };
  if (said("data_type")) return;
  const ops::FileType type = ops::FileTypeInMetadata(program_.options.loader->LoadMetadata(path + ".mtd"));
  if (type.data_type == DataType::kMatrix) return;
  attributes->emplace_back("data_type", Scalar(std::string(Name(type.data_type))));
  if (type.data_type == DataType::kScalar && !said("value_type"))
    attributes->emplace_back("value_type", Scalar(std::string(Name(type.value_type))));
}

void BodyBuilder::BuildWrite(const Expression& call) {
  const std::vector<std::string> options = FileOptionsOf("write");
  std::vector<NodeId> inputs;
  NodeId format_of_run = kNoNode;
  std::vector<std::pair<std::string, Scalar>> attributes;
  for (const Argument& argument : call.arguments) {
    if (argument.name.empty()) {
      inputs.push_back(BuildExpression(*argument.value));
    } else if (argument.name == "format") {
      const NodeId format = BuildExpression(*argument.value);
      if (block_.ValueOf(format))
        attributes.emplace_back("format", *block_.ValueOf(format));
      else
        format_of_run = format;
    } else if (!Contains(options, argument.name)) {
      Error(argument.name_range, fmt::format("{}() has no parameter '{}'", call.name, argument.name))
          .suggestion = SuggestName(argument.name, options);
    } else if (std::optional<Scalar> value = ConstantOf(call, argument, argument.name)) {
      // What is written has the type that it has.
      if (argument.name != "data_type" && argument.name != "value_type")
        attributes.emplace_back(argument.name, *std::move(value));
    }
  }
  if (inputs.size() == 3) {  // write(X, path, "csv")
    const std::optional<Scalar>& format = block_.ValueOf(inputs[2]);
    if (format && format->IsString()) {
      attributes.emplace_back("format", *format);
      inputs.pop_back();
    }
  }
  if (inputs.size() != 2) {
    Error(call.range, fmt::format("{}() takes a variable and a path, got {} positional argument{}", call.name,
                                  inputs.size(), inputs.size() == 1 ? "" : "s"));
    return;
  }
  if (InfoOf(inputs[1]).IsTabular()) {
    Error(call.arguments[1].value->range, fmt::format("the path of {}() must be a string", call.name));
    return;
  }
  if (format_of_run != kNoNode) inputs = {inputs[0], inputs[1], format_of_run};
  block_.Add("write", std::move(inputs), At(call.name_range), std::move(attributes));
}

void BodyBuilder::BuildPrint(const Expression& call) {
  for (const Argument& argument : call.arguments)
    if (!argument.name.empty())
      Error(argument.name_range, fmt::format("{}() has no parameter '{}'", call.name, argument.name));
  const std::vector<NodeId> given = BuildArguments(call);
  if (!CheckCount(call, 1, std::string::npos)) return;
  NodeId text = given[0];
  if (given.size() > 1) {
    const std::optional<Scalar>& format = block_.ValueOf(given[0]);
    if (!format && MayBeAnything(given[0])) return;
    if (!format || !format->IsString()) {
      Error(call.arguments[0].value->range,
            "the first of several arguments of print() must be a string literal, the format")
          .notes.push_back("strings are joined with +: print(\"x = \" + x)");
      return;
    }
    for (size_t i = 1; i < given.size(); ++i) {
      if (!InfoOf(given[i]).IsTabular()) continue;
      const std::string_view type = Name(InfoOf(given[i]).data_type);
      Error(call.arguments[i].value->range, fmt::format("print() formats scalars only, not a {}", type))
          .notes.push_back(fmt::format("toString(X) makes a string of a {}", type));
      return;
    }
    text = block_.Add("format", given, At(call.name_range));
  } else if (!InfoOf(text).IsScalar()) {  // a matrix or frame, or what only the run tells
    std::vector<NodeId> inputs(7, kNoNode);
    inputs[0] = text;
    text = block_.Add("toString", std::move(inputs), At(call.name_range));
  }
  block_.Add("print", {text}, At(call.name_range));
}

void BodyBuilder::BuildStopOrAssert(const Expression& call, const ops::Operator& builtin) {
  std::vector<NodeId> given = BuildArguments(call);
  if (!CheckCount(call, builtin.form == ops::CallForm::kAssert ? 1 : 0, 1)) return;
  if (given.empty()) given.push_back(block_.Literal(Scalar(""), At(call.name_range)));
  if (InfoOf(given[0]).IsTabular()) {
    Error(call.arguments[0].value->range, fmt::format("the argument of {}() must be a scalar, not a {}",
                                                      call.name, Name(InfoOf(given[0]).data_type)));
    return;
  }
  block_.Add(std::string(builtin.name), std::move(given), At(call.name_range));
}

}  // namespace heddle::compiler
