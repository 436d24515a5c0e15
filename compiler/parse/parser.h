// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "compiler/parse/ast.h"
#include "compiler/parse/diagnostics.h"

namespace heddle::compiler {

/// A longer text is refused: it is no script.
constexpr size_t kMostScriptBytes = size_t{64} << 20;

/// Parses one file: the complete grammar of the language, by recursive descent with operator precedence.
///
/// Any bytes are accepted. All errors go to `diagnostics`, one per statement: after an error the parser goes
/// on at the next statement. With errors the result is a valid tree without the statements that failed. Cost:
/// linear in the text. Sourced files are not opened; LoadScripts() does that.
///
/// With `takes_expressions` a statement of the top level may also be an expression alone, which is assigned
/// to kExpressionValue; calls that act, print() and the like, stay what they are. Of functions and namespaces
/// with one name the last one holds.
ScriptFile Parse(std::string path, std::string text, Diagnostics* diagnostics,
                 bool takes_expressions = false);

/// True if the text of statements ends inside one: an open bracket, string or comment, an operator without
/// its right side, a header without its body. False where something is wrong before that.
bool EndsInsideStatement(std::string_view text);

}  // namespace heddle::compiler
