// SPDX-License-Identifier: Apache-2.0
#include "cluster/language_server/answers.h"

namespace heddle::cluster {
namespace {

constexpr Method kMethods[] = {
    {"textDocument/completion", AnswerCompletion},
    {"completionItem/resolve", AnswerResolve},
    {"textDocument/signatureHelp", AnswerSignature},
    {"textDocument/formatting", AnswerFormatting},
    {"textDocument/hover", AnswerHover},
    {"textDocument/definition", AnswerDefinition},
    {"textDocument/references", AnswerReferences},
    {"textDocument/documentHighlight", AnswerHighlight},
    {"textDocument/prepareRename", AnswerPrepareRename},
    {"textDocument/rename", AnswerRename},
    {"textDocument/documentSymbol", AnswerSymbols},
    {"textDocument/foldingRange", AnswerFolding},
};

}  // namespace

std::span<const Method> Methods() { return kMethods; }

Result<compiler::ScriptViewPointer> ScriptOf(const Asked& asked, const Json& parameters) {
  const std::optional<std::string> address = FindText(parameters, {"textDocument", "uri"});
  if (!address) return InvalidArgument("textDocument.uri is missing");
  compiler::ScriptViewPointer script = asked.workspace.View(PathOf(*address));
  if (script == nullptr) return InvalidArgument("the document is not open: {}", *address);
  return script;
}

Result<AskedPlace> PlaceOf(const Asked& asked, const Json& parameters) {
  AskedPlace place;
  HEDDLE_ASSIGN_OR_RETURN(place.script, ScriptOf(asked, parameters));
  const auto position = ReadPlace(FindMember(parameters, {"position"}));
  if (!position) return InvalidArgument("position is missing");
  place.offset = place.script->lines.OffsetOf(*position, asked.workspace.units);
  place.place = place.script->lines.PlaceAt(place.offset);
  return place;
}

}  // namespace heddle::cluster
