// SPDX-License-Identifier: Apache-2.0
// Answers about names that stand in a script.
#include <fmt/format.h>

#include <map>

#include "cluster/language_server/answers.h"
#include "compiler/editor/hover.h"
#include "compiler/editor/name_places.h"
#include "compiler/editor/outline.h"

namespace heddle::cluster {
namespace {

// Kinds of symbols, folds and highlights in the protocol.
constexpr int kFunctionSymbol = 12, kVariableSymbol = 13, kNameSpaceSymbol = 3;
constexpr int kReadHighlight = 2, kWriteHighlight = 3;

Json LocationOf(const Asked& asked, const compiler::NamePlace& place) {
  const std::string address = asked.workspace.Address(place.script->path);
  if (address.empty()) return nullptr;
  return {{"uri", address}, {"range", ToJson(place.script->lines, place.range, asked.workspace.units)}};
}

Json LocationsOf(const Asked& asked, const std::vector<compiler::NamePlace>& places) {
  Json locations = Json::array();
  for (const compiler::NamePlace& place : places)
    if (Json location = LocationOf(asked, place); !location.is_null())
      locations.push_back(std::move(location));
  return locations;
}

std::string Trimmed(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

Result<Json> AnswerHover(const Asked& asked, const Json& parameters) {
  HEDDLE_ASSIGN_OR_RETURN(const AskedPlace at, PlaceOf(asked, parameters));
  asked.checker.WaitFor(at.script->path, at.script->text, asked.others_wait);
  const std::shared_ptr<const CheckedDocument> checked = asked.checker.Find(at.script->path);
  const bool has_values = checked != nullptr && checked->values_script != nullptr;
  compiler::HoverOptions options;
  options.min_distributed_bytes = asked.workspace.settings().min_distributed_bytes;
  options.is_current = !has_values || checked->values_script->text == at.script->text;
  const std::optional<compiler::Hover> hover =
      HoverAt(at.script, at.place, has_values ? checked->values : compiler::ValueInfos(), options,
              asked.workspace.ScriptsFor(at.script->path));
  if (!hover) return Json(nullptr);
  std::string text = fmt::format("```dml\n{}\n```", hover->code);
  // Helps are laid out in columns.
  if (!hover->text.empty()) text += fmt::format("\n```text\n{}\n```", Trimmed(hover->text));
  return Json{{"contents", {{"kind", "markdown"}, {"value", text}}},
              {"range", ToJson(at.script->lines, hover->range, asked.workspace.units)}};
}

Result<Json> AnswerDefinition(const Asked& asked, const Json& parameters) {
  HEDDLE_ASSIGN_OR_RETURN(const AskedPlace at, PlaceOf(asked, parameters));
  return LocationsOf(asked, DefinitionsAt(at.script, at.place, asked.workspace.ScriptsFor(at.script->path)));
}

Result<Json> AnswerReferences(const Asked& asked, const Json& parameters) {
  HEDDLE_ASSIGN_OR_RETURN(const AskedPlace at, PlaceOf(asked, parameters));
  const std::vector<compiler::ScriptViewPointer> all = asked.workspace.All();
  std::vector<compiler::NamePlace> places =
      ReferencesAt(at.script, at.place, all, asked.workspace.ScriptsFor(at.script->path));
  const Json* const declares = FindMember(parameters, {"context", "includeDeclaration"});
  if (declares != nullptr && declares->is_boolean() && !declares->get<bool>())
    std::erase_if(places, [](const compiler::NamePlace& place) { return place.is_definition; });
  return LocationsOf(asked, places);
}

Result<Json> AnswerHighlight(const Asked& asked, const Json& parameters) {
  HEDDLE_ASSIGN_OR_RETURN(const AskedPlace at, PlaceOf(asked, parameters));
  Json highlights = Json::array();
  for (const compiler::NamePlace& place :
       ReferencesAt(at.script, at.place, {}, asked.workspace.ScriptsFor(at.script->path)))
    if (place.script->path == at.script->path)
      highlights.push_back({{"range", ToJson(at.script->lines, place.range, asked.workspace.units)},
                            {"kind", place.is_definition ? kWriteHighlight : kReadHighlight}});
  return highlights;
}

Result<Json> AnswerPrepareRename(const Asked& asked, const Json& parameters) {
  HEDDLE_ASSIGN_OR_RETURN(const AskedPlace at, PlaceOf(asked, parameters));
  const compiler::NameUse* const use = at.script->NameAt(at.place);
  if (use == nullptr) return Json(nullptr);
  HEDDLE_RETURN_IF_ERROR(CheckRename(at.script, at.place, "", asked.workspace.ScriptsFor(at.script->path)));
  return Json{{"range", ToJson(at.script->lines, use->range, asked.workspace.units)},
              {"placeholder", use->name}};
}

Result<Json> AnswerRename(const Asked& asked, const Json& parameters) {
  HEDDLE_ASSIGN_OR_RETURN(const AskedPlace at, PlaceOf(asked, parameters));
  const std::optional<std::string> new_name = FindText(parameters, {"newName"});
  if (!new_name) return InvalidArgument("newName is missing");
  if (new_name->empty()) return InvalidArgument("the new name is empty");
  HEDDLE_RETURN_IF_ERROR(
      CheckRename(at.script, at.place, *new_name, asked.workspace.ScriptsFor(at.script->path)));
  const std::vector<compiler::ScriptViewPointer> all = asked.workspace.All();
  std::map<std::string, Json> edits;
  for (const compiler::NamePlace& place :
       ReferencesAt(at.script, at.place, all, asked.workspace.ScriptsFor(at.script->path))) {
    const std::string address = asked.workspace.Address(place.script->path);
    if (address.empty()) continue;
    edits.try_emplace(address, Json::array())
        .first->second.push_back({{"range", ToJson(place.script->lines, place.range, asked.workspace.units)},
                                  {"newText", *new_name}});
  }
  return Json{{"changes", edits}};
}

Result<Json> AnswerSymbols(const Asked& asked, const Json& parameters) {
  using Kind = compiler::OutlineItem::Kind;
  HEDDLE_ASSIGN_OR_RETURN(const compiler::ScriptViewPointer script, ScriptOf(asked, parameters));
  Json symbols = Json::array();
  for (const compiler::OutlineItem& item : OutlineOf(*script)) {
    const int kind = item.kind == Kind::kFunction    ? kFunctionSymbol
                     : item.kind == Kind::kNameSpace ? kNameSpaceSymbol
                                                     : kVariableSymbol;
    symbols.push_back({{"name", item.name},
                       {"detail", item.detail},
                       {"kind", kind},
                       {"range", ToJson(script->lines, item.range, asked.workspace.units)},
                       {"selectionRange", ToJson(script->lines, item.name_range, asked.workspace.units)}});
  }
  return symbols;
}

Result<Json> AnswerFolding(const Asked& asked, const Json& parameters) {
  HEDDLE_ASSIGN_OR_RETURN(const compiler::ScriptViewPointer script, ScriptOf(asked, parameters));
  Json folds = Json::array();
  for (const compiler::Fold& fold : FoldsIn(*script)) {
    Json item = {{"startLine", fold.first}, {"endLine", fold.last}};
    if (fold.is_comment) item["kind"] = "comment";
    folds.push_back(std::move(item));
  }
  return folds;
}

}  // namespace heddle::cluster
