// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "cluster/language_server/workspace.h"
#include "core/status.h"

namespace heddle::cluster {

/// What an answer may use.
struct Asked {
  Workspace& workspace;
  const Checker& checker;
  /// Whether other messages wait: then an answer that would wait for the compiler gives what is known.
  const std::function<bool()>& others_wait;
};

/// A request of the protocol: its method, and what makes its result. kInvalidArgument for wrong parameters;
/// other errors are shown to the user.
struct Method {
  std::string_view name;
  Result<Json> (*answer)(const Asked& asked, const Json& parameters);
};

/// All of them but those that begin and end a session.
std::span<const Method> Methods();

/// The script of {"textDocument": {"uri": ...}}; kInvalidArgument when it is not open.
Result<compiler::ScriptViewPointer> ScriptOf(const Asked& asked, const Json& parameters);
/// The same, and the place of "position".
struct AskedPlace {
  compiler::ScriptViewPointer script;
  size_t offset = 0;
  compiler::Place place;
};
Result<AskedPlace> PlaceOf(const Asked& asked, const Json& parameters);

// In answers_text.cc.
Result<Json> AnswerCompletion(const Asked& asked, const Json& parameters);
Result<Json> AnswerResolve(const Asked& asked, const Json& parameters);
Result<Json> AnswerSignature(const Asked& asked, const Json& parameters);
Result<Json> AnswerFormatting(const Asked& asked, const Json& parameters);
// In answers_names.cc.
Result<Json> AnswerHover(const Asked& asked, const Json& parameters);
Result<Json> AnswerDefinition(const Asked& asked, const Json& parameters);
Result<Json> AnswerReferences(const Asked& asked, const Json& parameters);
Result<Json> AnswerHighlight(const Asked& asked, const Json& parameters);
Result<Json> AnswerPrepareRename(const Asked& asked, const Json& parameters);
Result<Json> AnswerRename(const Asked& asked, const Json& parameters);
Result<Json> AnswerSymbols(const Asked& asked, const Json& parameters);
Result<Json> AnswerFolding(const Asked& asked, const Json& parameters);

}  // namespace heddle::cluster
