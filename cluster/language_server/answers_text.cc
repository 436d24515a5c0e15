// SPDX-License-Identifier: Apache-2.0
// Answers about what is being written.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cluster/language_server/answers.h"
#include "compiler/editor/complete.h"
#include "compiler/help/function_help.h"
#include "engine/interactive/complete_files.h"
#include "ops/base/operator.h"

namespace heddle::cluster {
namespace {

using compiler::Candidate;

// Kinds of completions in the protocol.
int KindOf(Candidate::Kind kind) {
  switch (kind) {
    case Candidate::Kind::kArgument: return 5;  // field
    case Candidate::Kind::kVariable: return 6;  // variable
    case Candidate::Kind::kFunction:
    case Candidate::Kind::kBuiltin:
    case Candidate::Kind::kLibrary: return 3;    // function
    case Candidate::Kind::kNameSpace: return 9;  // module
    case Candidate::Kind::kWord: return 14;      // keyword
    case Candidate::Kind::kFile: return 17;      // file
    case Candidate::Kind::kFolder: return 19;    // folder
  }
  return 1;
}

std::string_view DetailOf(Candidate::Kind kind) {
  switch (kind) {
    case Candidate::Kind::kArgument: return "argument";
    case Candidate::Kind::kBuiltin: return "builtin";
    case Candidate::Kind::kLibrary: return "library";
    case Candidate::Kind::kFunction: return "function";
    default: return "";
  }
}

// The variables around an offset, of the main script or of the function there: every name in that part of the
// text that is no call, also where it does not parse.
std::vector<std::string> VariablesAround(const compiler::ScriptView& script, size_t offset) {
  const compiler::FunctionHeader* inside = nullptr;
  const std::string_view text = script.text;
  const auto end_of = [&](const compiler::FunctionHeader& header) {
    // A function ends at the "}" that begins a line.
    const size_t close = text.find("\n}", header.begin);
    return std::min(header.end, close == std::string_view::npos ? header.end : close + 1);
  };
  for (const compiler::FunctionHeader& header : script.headers)
    if (header.begin <= offset && offset <= end_of(header)) inside = &header;
  std::set<std::string> names;
  size_t function = 0;
  int32_t open = 0;
  for (size_t i = 0; i + 1 < script.tokens.size(); ++i) {
    const compiler::Token& token = script.tokens[i];
    if (token.Is("(")) ++open;
    if (token.Is(")")) --open;
    if (token.first_on_line && token.range.begin.column == 1) open = 0;
    if (token.kind != compiler::Token::Kind::kIdentifier || !token.name_space.empty()) continue;
    if (token.offset < offset && offset <= token.end_offset) continue;  // the word itself
    while (function < script.headers.size() && end_of(script.headers[function]) < token.offset) ++function;
    const bool is_in_function =
        function < script.headers.size() && script.headers[function].begin <= token.offset;
    const compiler::FunctionHeader* const around = is_in_function ? &script.headers[function] : nullptr;
    if (around != inside) continue;
    const compiler::Token& next = script.tokens[i + 1];
    const bool is_argument =
        open > 0 && next.Is("=") && i > 0 && (script.tokens[i - 1].Is("(") || script.tokens[i - 1].Is(","));
    const bool is_type = next.Is("[") && i + 2 < script.tokens.size() &&
                         script.tokens[i + 2].kind == compiler::Token::Kind::kKeyword;
    if (next.Is("(") || is_argument || is_type) continue;
    if (next.Is("=") && i + 2 < script.tokens.size() && script.tokens[i + 2].Is("function")) continue;
    names.emplace(token.text);
  }
  return {names.begin(), names.end()};
}

bool TakesFiles(std::string_view function) {
  if (function == "source" || function == "setwd") return true;
  const ops::Operator* const builtin = ops::FindBuiltin(function);
  return builtin != nullptr && builtin->files;
}

compiler::KnownNames NamesFor(const Asked& asked, const AskedPlace& at,
                              const compiler::WritingContext& context) {
  compiler::KnownNames known;
  compiler::Scripts* const scripts = asked.workspace.ScriptsFor(at.script->path);
  known.variables = VariablesAround(*at.script, at.offset);
  for (const compiler::FunctionHeader& header : at.script->headers) known.functions.push_back(header.name);
  for (const compiler::Import& import : at.script->file.imports)
    known.name_spaces.push_back(import.name_space);
  known.members = [scripts, script = at.script](std::string_view name_space) {
    std::vector<std::string> names;
    if (const compiler::ScriptViewPointer imported = scripts->Imported(*script, name_space))
      for (const compiler::FunctionHeader& header : imported->headers) names.push_back(header.name);
    return names;
  };
  known.parameters = [scripts, script = at.script](std::string_view function) {
    const size_t colons = function.rfind("::");
    const std::string_view name_space = colons == std::string_view::npos ? "" : function.substr(0, colons);
    const std::string name(colons == std::string_view::npos ? function : function.substr(colons + 2));
    std::vector<std::string> names;
    if (const auto callable = FindCallable(script, name_space, name, scripts))
      for (const compiler::Callable::Parameter& parameter : callable->parameters)
        names.push_back(parameter.name);
    return names;
  };
  if (context.call && TakesFiles(context.call->name)) {
    known.files = [root = asked.workspace.settings().check.root](std::string_view path) {
      return engine::FilesBeginningWith(path, root);
    };
  }
  return known;
}

}  // namespace

Result<Json> AnswerCompletion(const Asked& asked, const Json& parameters) {
  HEDDLE_ASSIGN_OR_RETURN(const AskedPlace at, PlaceOf(asked, parameters));
  const std::string_view before = std::string_view(at.script->text).substr(0, at.offset);
  const compiler::WritingContext context = compiler::ContextAtEnd(before);
  const compiler::TextLines& lines = at.script->lines;
  const Json range = {{"start", ToJson(lines.EditorPlaceAt(context.begin, asked.workspace.units))},
                      {"end", ToJson(lines.EditorPlaceAt(at.offset, asked.workspace.units))}};
  Json items = Json::array();
  for (const Candidate& candidate : compiler::Complete(before, context, NamesFor(asked, at, context)))
    items.push_back({{"label", candidate.text},
                     {"kind", KindOf(candidate.kind)},
                     {"detail", DetailOf(candidate.kind)},
                     // Editors sort by text unless told otherwise.
                     {"sortText", fmt::format("{}{}", static_cast<int>(candidate.kind), candidate.text)},
                     {"textEdit", {{"range", range}, {"newText", candidate.text}}}});
  return Json{{"isIncomplete", context.kind == compiler::WritingContext::Kind::kText},
              {"items", std::move(items)}};
}

Result<Json> AnswerResolve(const Asked&, const Json& parameters) {
  Json item = parameters;
  const std::optional<std::string> label = FindText(item, {"label"});
  if (!label) return InvalidArgument("label is missing");
  // A function of the script may have the name of one of the language.
  const std::optional<std::string> detail = FindText(item, {"detail"});
  if (detail != DetailOf(Candidate::Kind::kBuiltin) && detail != DetailOf(Candidate::Kind::kLibrary))
    return item;
  if (const std::string help = compiler::HelpOfName(*label); !help.empty())
    item["documentation"] = {{"kind", "markdown"}, {"value", fmt::format("```text\n{}```", help)}};
  return item;
}

Result<Json> AnswerSignature(const Asked& asked, const Json& parameters) {
  HEDDLE_ASSIGN_OR_RETURN(const AskedPlace at, PlaceOf(asked, parameters));
  const compiler::WritingContext context =
      compiler::ContextAtEnd(std::string_view(at.script->text).substr(0, at.offset));
  if (!context.call || context.kind == compiler::WritingContext::Kind::kNothing) return Json(nullptr);
  const std::string& function = context.call->name;
  const size_t colons = function.rfind("::");
  const std::optional<compiler::Callable> callable =
      FindCallable(at.script, colons == std::string::npos ? "" : function.substr(0, colons),
                   colons == std::string::npos ? function : function.substr(colons + 2),
                   asked.workspace.ScriptsFor(at.script->path));
  if (!callable) return Json(nullptr);
  std::vector<std::pair<size_t, size_t>> places;
  const std::string usage = callable->Usage(&places);
  Json signature = {{"label", usage}, {"parameters", Json::array()}};
  if (!callable->text.empty())
    signature["documentation"] = {{"kind", "markdown"},
                                  {"value", fmt::format("```text\n{}```", callable->text)}};
  size_t active = context.call->argument;
  for (size_t i = 0; i < places.size(); ++i) {
    // Names of functions and defaults may hold any character; labels are given as texts, then.
    signature["parameters"].push_back(
        {{"label", usage.substr(places[i].first, places[i].second - places[i].first)}});
    if (callable->parameters[i].name == context.call->argument_name) active = i;
  }
  return Json{{"signatures", Json::array({signature})}, {"activeSignature", 0}, {"activeParameter", active}};
}

Result<Json> AnswerFormatting(const Asked& asked, const Json& parameters) {
  HEDDLE_ASSIGN_OR_RETURN(const compiler::ScriptViewPointer script, ScriptOf(asked, parameters));
  compiler::Diagnostics diagnostics;
  const Result<std::string> formatted =
      FormatScript(script->path, script->text, asked.workspace.settings().format, &diagnostics);
  if (!formatted.ok() && diagnostics.HasErrors()) {
    const compiler::Diagnostic& first = *diagnostics.Sorted(compiler::Severity::kError)[0];
    return FailedPrecondition("the script is left as it is: line {}: {}", first.range.begin.line,
                              first.message);
  }
  HEDDLE_RETURN_IF_ERROR(formatted.status());
  if (*formatted == script->text) return Json::array();
  // The lines that are the same at both ends are left alone, so that cursors there stay.
  const std::string_view before = script->text, after = *formatted;
  size_t same = 0;
  while (same < std::min(before.size(), after.size()) && before[same] == after[same]) ++same;
  while (same > 0 && before[same - 1] != '\n') --same;
  size_t same_end = 0;
  while (same_end < std::min(before.size(), after.size()) - same &&
         before[before.size() - 1 - same_end] == after[after.size() - 1 - same_end])
    ++same_end;
  while (same_end > 0 && before[before.size() - same_end - 1] != '\n') --same_end;
  const compiler::TextLines::Units units = asked.workspace.units;
  return Json::array({{{"range",
                        {{"start", ToJson(script->lines.EditorPlaceAt(same, units))},
                         {"end", ToJson(script->lines.EditorPlaceAt(before.size() - same_end, units))}}},
                       {"newText", std::string(after.substr(same, after.size() - same_end - same))}}});
}

}  // namespace heddle::cluster
