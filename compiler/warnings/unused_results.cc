// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "compiler/warnings/warners.h"

namespace heddle::compiler {
namespace {

// Which functions of a set of files only compute their results: they neither print nor write nor end the
// script, nor call what is not known here.
class Effects {
 public:
  explicit Effects(const ScriptSet& scripts) : scripts_(scripts) {}

  // The function that a call in the file means, and the file that it is in; nullptr for what no file defines.
  const FunctionDefinition* Find(const ScriptFile& file, const Expression& call,
                                 const ScriptFile** found_in) const {
    const ScriptFile* in = &file;
    if (!call.name_space.empty()) {
      in = nullptr;
      for (const Import& import : file.imports)
        if (import.name_space == call.name_space && import.file >= 0)
          in = &scripts_.files[static_cast<size_t>(import.file)];
    }
    *found_in = in;
    if (in == nullptr) return nullptr;
    const auto found =
        std::find_if(in->functions.begin(), in->functions.end(),
                     [&](const FunctionDefinition& function) { return function.name == call.name; });
    return found == in->functions.end() ? nullptr : &*found;
  }

  bool OnlyComputes(const ScriptFile& file, const FunctionDefinition& function) const {
    std::set<const FunctionDefinition*> met;
    return OnlyComputes(file, function, &met);
  }

 private:
  // Functions that were met before are looked at by whoever met them first.
  bool OnlyComputes(const ScriptFile& file, const FunctionDefinition& function,
                    std::set<const FunctionDefinition*>* met) const {
    if (!met->insert(&function).second) return true;
    bool only = true;
    ForEachStatement(function.body, [&](const Statement& statement) {
      ForEachExpressionOf(statement, [&](const Expression& expression) {
        if (only && expression.kind == Expression::Kind::kCall)
          only = CallOnlyComputes(file, expression, met);
      });
    });
    return only;
  }

  bool CallOnlyComputes(const ScriptFile& file, const Expression& call,
                        std::set<const FunctionDefinition*>* met) const {
    const ScriptFile* in = nullptr;
    if (const FunctionDefinition* callee = Find(file, call, &in)) return OnlyComputes(*in, *callee, met);
    const ops::Operator* const builtin = BuiltinOf(call);
    return builtin != nullptr && !builtin->effect;
  }

  const ScriptSet& scripts_;
};

}  // namespace

void WarnOfUnusedResults(const ScriptSet& scripts, const ScriptFile& file,
                         std::span<const Statement> statements, const Warner& warn) {
  const Effects effects(scripts);
  ForEachStatement(statements, [&](const Statement& statement) {
    if (statement.kind != Statement::Kind::kCall) return;
    const ScriptFile* in = nullptr;
    const FunctionDefinition* const callee = effects.Find(file, *statement.value, &in);
    if (callee == nullptr || callee->results.empty() || !effects.OnlyComputes(*in, *callee)) return;
    warn(statement.range,
         fmt::format("the results of {}() are not used, and it does nothing else", statement.value->name));
  });
}

}  // namespace heddle::compiler
