// SPDX-License-Identifier: Apache-2.0
#include "compiler/editor/name_places.h"

#include <algorithm>

#include "compiler/build/body_builder.h"
#include "compiler/library/library_files.h"
#include "compiler/parse/lexer.h"
#include "compiler/parse/statement_parser.h"
#include "core/call_site.h"
#include "ops/base/operator.h"

namespace heddle::compiler {
namespace {

using Kind = NameUse::Kind;

// A function of a script, or one of its parameters.
struct Meaning {
  ScriptViewPointer script;
  const FunctionDefinition* function = nullptr;
  std::string parameter;  // "": the function itself
};

std::optional<Meaning> MeaningOf(const ScriptViewPointer& script, const NameUse& use, Scripts* scripts) {
  if (use.kind == Kind::kFunction && use.is_definition)
    return Meaning{script, script->FindFunction(use.name), ""};
  if (use.kind == Kind::kVariable && use.scope > 0) {
    const FunctionDefinition& function = script->file.functions[static_cast<size_t>(use.scope) - 1];
    for (const ParameterDefinition& parameter : function.parameters)
      if (parameter.name == use.name) return Meaning{script, &function, use.name};
  }
  if (use.kind != Kind::kFunction && use.kind != Kind::kArgument) return std::nullopt;
  const bool is_argument = use.kind == Kind::kArgument;
  const std::optional<Callable> callable =
      FindCallable(script, use.name_space, is_argument ? use.callee : use.name, scripts);
  if (!callable || callable->definition == nullptr) return std::nullopt;
  return Meaning{callable->script, callable->definition, is_argument ? use.name : ""};
}

bool IsSame(const Meaning& a, const Meaning& b) {
  return a.script->path == b.script->path && a.function->name == b.function->name &&
         a.parameter == b.parameter;
}

bool IsSameVariable(const NameUse& a, const NameUse& b) {
  return a.kind == b.kind && a.scope == b.scope && a.name == b.name;
}

// Places in one script of a function or parameter, by what its names mean.
void AddPlaces(const ScriptViewPointer& script, const Meaning& meaning, Scripts* scripts,
               std::vector<NamePlace>* places) {
  const std::string& name = meaning.parameter.empty() ? meaning.function->name : meaning.parameter;
  for (const NameUse& use : script->names) {
    if (use.name != name) continue;
    const std::optional<Meaning> other = MeaningOf(script, use, scripts);
    if (other && IsSame(*other, meaning)) places->push_back({script, use.range, use.is_definition});
  }
}

}  // namespace

std::vector<NamePlace> DefinitionsAt(const ScriptViewPointer& script, const Place& place, Scripts* scripts) {
  const NameUse* const use = script->NameAt(place);
  if (use == nullptr) return {};
  std::vector<NamePlace> places;
  switch (use->kind) {
    case Kind::kVariable:
      if (use->is_definition) places.push_back({script, use->range, true});
      for (const int32_t definition : use->from)
        places.push_back({script, script->names[static_cast<size_t>(definition)].range, true});
      break;
    case Kind::kFunction:
    case Kind::kArgument: {
      const std::optional<Meaning> meaning = MeaningOf(script, *use, scripts);
      if (!meaning) break;
      SourceRange range = meaning->function->name_range;
      for (const ParameterDefinition& parameter : meaning->function->parameters)
        if (parameter.name == meaning->parameter) range = parameter.name_range;
      places.push_back({meaning->script, range, true});
      break;
    }
    case Kind::kNameSpace:
      if (ScriptViewPointer imported = scripts->Imported(*script, use->name))
        places.push_back({imported, {{1, 1}, {1, 1}}, true});
      break;
    case Kind::kScriptArgument: break;
  }
  return places;
}

std::vector<NamePlace> ReferencesAt(const ScriptViewPointer& script, const Place& place,
                                    const std::vector<ScriptViewPointer>& others, Scripts* scripts) {
  const NameUse* const use = script->NameAt(place);
  if (use == nullptr) return {};
  std::vector<NamePlace> places;
  if (const std::optional<Meaning> meaning = MeaningOf(script, *use, scripts)) {
    std::vector<ScriptViewPointer> all = {meaning->script, script};
    all.insert(all.end(), others.begin(), others.end());
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a->path < b->path; });
    all.erase(
        std::unique(all.begin(), all.end(), [](const auto& a, const auto& b) { return a->path == b->path; }),
        all.end());
    for (const ScriptViewPointer& other : all) AddPlaces(other, *meaning, scripts, &places);
    return places;
  }
  for (const NameUse& other : script->names)
    if (IsSameVariable(*use, other) && (use->kind != Kind::kArgument || use->callee == other.callee))
      places.push_back({script, other.range, other.is_definition});
  if (use->kind != Kind::kNameSpace) return places;
  // Names are those behind "ns::"; the namespace is before them.
  for (const NameUse& other : script->names) {
    if (other.kind != Kind::kFunction || other.name_space != use->name) continue;
    const Place begin{other.range.begin.line,
                      other.range.begin.column - 2 - static_cast<int32_t>(use->name.size())};
    places.push_back(
        {script, {begin, {begin.line, begin.column + static_cast<int32_t>(use->name.size())}}, false});
  }
  return places;
}

Status CheckRename(const ScriptViewPointer& script, const Place& place, const std::string& new_name,
                   Scripts* scripts) {
  const NameUse* const use = script->NameAt(place);
  if (use == nullptr) return NotFound("there is no name here");
  const std::optional<Meaning> meaning = MeaningOf(script, *use, scripts);
  const bool is_of_call = use->kind == Kind::kFunction || use->kind == Kind::kArgument;
  if (is_of_call && !meaning)
    return FailedPrecondition("'{}' is not defined in these scripts and cannot be renamed", use->name);
  if (meaning && meaning->script->path.starts_with(kLibraryPrefix))
    return FailedPrecondition("'{}' is of the library and cannot be renamed", use->name);
  if (use->kind == Kind::kScriptArgument)
    return FailedPrecondition("'${}' is given on the command line and cannot be renamed here", use->name);
  if (new_name.empty()) return OkStatus();
  const std::vector<Token> tokens = Tokenize(new_name);
  const bool is_name = tokens.size() == 2 && tokens[0].kind == Token::Kind::kIdentifier &&
                       tokens[0].problem == nullptr && tokens[0].text == new_name;
  if (!is_name || new_name.find('.') != std::string::npos || IsConstant(new_name))
    return InvalidArgument("'{}' is no name: names are letters, digits and '_', and begin with a letter",
                           new_name);
  if (use->kind == Kind::kFunction &&
      (script->FindFunction(new_name) != nullptr || ops::FindBuiltin(new_name) != nullptr))
    return InvalidArgument("there is a function '{}' already", new_name);
  const bool is_taken = std::any_of(script->names.begin(), script->names.end(), [&](const NameUse& other) {
    return other.kind == use->kind && other.scope == use->scope && other.name == new_name;
  });
  if (use->kind == Kind::kVariable && is_taken)
    return InvalidArgument("there is a variable '{}' here already", new_name);
  return OkStatus();
}

}  // namespace heddle::compiler
