// SPDX-License-Identifier: Apache-2.0
#include "compiler/editor/scripts.h"

#include <utility>

#include "compiler/build/function_table.h"
#include "compiler/help/function_help.h"
#include "compiler/library/library_files.h"
#include "core/call_site.h"
#include "ops/base/operator.h"
#include "ops/base/operator_traits.h"

namespace heddle::compiler {
namespace {

std::string TypeOf(const ParameterDefinition& parameter) {
  if (parameter.data_type == DataType::kScalar) return std::string(Name(parameter.value_type));
  return std::string(Name(parameter.data_type));
}

std::string TextBetween(const ScriptView& script, const SourceRange& range) {
  const size_t begin = script.lines.OffsetOf(range.begin);
  return script.text.substr(begin, script.lines.OffsetOf(range.end) - begin);
}

Callable Defined(const ScriptViewPointer& script, const FunctionDefinition& definition, std::string name) {
  Callable callable;
  callable.name = std::move(name);
  callable.script = script;
  callable.definition = &definition;
  for (const ParameterDefinition& parameter : definition.parameters) {
    Callable::Parameter& known = callable.parameters.emplace_back();
    known.name = parameter.name;
    known.type = TypeOf(parameter);
    known.optional = parameter.default_value != nullptr;
    if (known.optional) known.default_value = TextBetween(*script, parameter.default_value->range);
  }
  for (const ParameterDefinition& result : definition.results) {
    Callable::Parameter& known = callable.results.emplace_back();
    known.name = result.name;
    known.type = TypeOf(result);
  }
  callable.text = script->CommentAbove(definition.range.begin.line);
  return callable;
}

// A header whose body does not parse.
Callable Written(const ScriptViewPointer& script, const FunctionHeader& header) {
  Callable callable;
  callable.name = header.name;
  callable.script = script;
  for (const std::string& parameter : header.parameters) callable.parameters.emplace_back().name = parameter;
  return callable;
}

Callable Builtin(const ops::Operator& builtin, const std::string& name) {
  Callable callable;
  callable.name = name;
  for (const ops::OperatorParameter& parameter : ops::ParseParameters(builtin.parameters)) {
    Callable::Parameter& known = callable.parameters.emplace_back();
    known.name = parameter.name;
    known.optional = parameter.optional;
  }
  callable.text = HelpOfName(name);
  return callable;
}

// The entry point of a library file: the first of m_NAME, f_NAME and s_NAME, or NAME itself in a folder of
// others.
const FunctionDefinition* EntryOf(const ScriptView& script, const std::string& name) {
  for (const EntryPoint& point : kEntryPoints)
    if (const FunctionDefinition* function = script.FindFunction(std::string(point.prefix) + name))
      return function;
  return script.FindFunction(name);
}

}  // namespace

ScriptViewPointer Scripts::View(const std::string& path, const std::string& text) {
  ScriptViewPointer& view = views_[path];
  if (view == nullptr || view->text != text) view = std::make_shared<const ScriptView>(path, text);
  return view;
}

ScriptViewPointer Scripts::Find(const std::string& path) {
  if (const LibraryFile* const file = FindLibraryPath(path)) return View(path, std::string(file->text));
  if (path.starts_with(kLibraryPrefix)) return nullptr;
  const std::string whole = whole_path_ ? whole_path_(path) : path;
  const Result<std::string> text = loader_.Load(whole);
  return text.ok() ? View(whole, *text) : nullptr;
}

ScriptViewPointer Scripts::FindFirst(const std::vector<std::string>& paths) {
  for (const std::string& path : paths)
    if (ScriptViewPointer view = Find(path)) return view;
  return nullptr;
}

ScriptViewPointer Scripts::Imported(const ScriptView& script, std::string_view name_space) {
  const Import* const import = script.FindImport(name_space);
  return import == nullptr ? nullptr : FindFirst(ImportCandidates(*import, options_));
}

ScriptViewPointer Scripts::OfLibraryFunction(const std::string& name) {
  return FindFirst(LibraryCandidates(name, options_));
}

std::string Callable::Usage(std::vector<std::pair<size_t, size_t>>* places) const {
  std::string usage;
  for (const Parameter& result : results) usage += (usage.empty() ? "" : ", ") + result.name;
  if (results.size() > 1) usage = "[" + usage + "]";
  if (!results.empty()) usage += " = ";
  usage += name + "(";
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (i > 0) usage += ", ";
    const size_t begin = usage.size();
    const Parameter& parameter = parameters[i];
    usage += parameter.name;
    if (!parameter.default_value.empty()) {
      usage += "=" + parameter.default_value;
    } else if (parameter.optional) {
      usage += "?";
    }
    if (places != nullptr) places->emplace_back(begin, usage.size());
  }
  return usage + ")";
}

std::optional<Callable> FindCallable(const ScriptViewPointer& script, std::string_view name_space,
                                     const std::string& name, Scripts* scripts) {
  if (!name_space.empty()) {
    const ScriptViewPointer imported = scripts->Imported(*script, name_space);
    const FunctionDefinition* const function = imported != nullptr ? imported->FindFunction(name) : nullptr;
    if (function == nullptr) return std::nullopt;
    return Defined(imported, *function, fmt::format("{}::{}", name_space, name));
  }
  if (const FunctionDefinition* const function = script->FindFunction(name))
    return Defined(script, *function, name);
  for (const FunctionHeader& header : script->headers)
    if (header.name == name) return Written(script, header);
  if (const ops::Operator* const builtin = ops::FindBuiltin(name)) return Builtin(*builtin, name);
  const ScriptViewPointer library = scripts->OfLibraryFunction(name);
  if (library == nullptr) return std::nullopt;
  const FunctionDefinition* const entry = EntryOf(*library, name);
  if (entry == nullptr) return std::nullopt;
  Callable callable = Defined(library, *entry, name);
  if (library->path.starts_with(kLibraryPrefix)) callable.text = HelpOfName(name);
  return callable;
}

}  // namespace heddle::compiler
