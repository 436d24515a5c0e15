// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::compiler {

/// How the call of a builtin becomes nodes.
enum class CallForm : uint8_t {
  kPositional,  ///< One operator. Arguments go by position; their names only count when all are named.
  kNamed,       ///< One operator. Positional arguments come first, the others by name.
  kVariadic,    ///< One operator with any number of inputs.
  // The rest is written by hand in builtin_calls.cc.
  kMinMax,
  kOuter,
  kTable,
  kMatrix,
  kRand,
  kRead,
  kPrint,
  kStop,
  kAssert,
  kWrite,  ///< Statements without a result.
};

/// A native builtin that Heddle runs.
struct Builtin {
  std::string_view name;
  std::string_view op;  ///< Operator of ops/catalog.h.
  CallForm form;
  /// Names in the order of the operator's inputs: "target by? @margin". "?" may be left out, "@" is an
  /// attribute of the node, fixed by the text of the script.
  std::string_view parameters;
};

/// nullptr when Heddle has no such builtin. Aliases count ("avg", "append", "Rand", ...).
const Builtin* FindBuiltin(std::string_view name);
/// All names, without aliases: for suggestions.
std::vector<std::string> BuiltinNames();

/// How many results a call has: of a statement without one as of most functions 1.
int ResultCountOf(const Builtin& builtin);
/// "x = f(...)", "[a, b] = f(...)": how a script takes the results of a call.
std::string AssignmentOf(std::string_view name, int results);

struct BuiltinParameter {
  std::string_view name;
  bool optional = false;
  bool attribute = false;
};
/// Builtin::parameters taken apart.
std::vector<BuiltinParameter> ParametersOf(const Builtin& builtin);

}  // namespace heddle::compiler
