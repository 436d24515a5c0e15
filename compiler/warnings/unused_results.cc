// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "compiler/warnings/warners.h"
#include "ops/operator.h"

namespace heddle::compiler {
namespace {

// Which functions of a set of files only compute their results: they neither print nor write nor end the
// script, nor call what is not known here.
class Effects {
 public:
  explicit Effects(const ScriptSet& scripts) : scripts_(scripts) {}

  /// The function that a call in the file means; null for what the file does not name.
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

  bool OnlyComputes(const ScriptFile& file, const FunctionDefinition& function) {
    // While it is looked at it counts as one that does, so that recursion ends.
    const auto [known, is_new] = only_computes_.try_emplace(&function, true);
    if (!is_new) return known->second;
    bool only = true;
    ForEachStatement(function.body, [&](const Statement& statement) {
      ForEachExpressionOf(statement, [&](const Expression& expression) {
        if (only && expression.kind == Expression::Kind::kCall) only = CallOnlyComputes(file, expression);
      });
    });
    return only_computes_[&function] = only;
  }

 private:
  bool CallOnlyComputes(const ScriptFile& file, const Expression& call) {
    const ScriptFile* in = nullptr;
    if (const FunctionDefinition* callee = Find(file, call, &in)) return OnlyComputes(*in, *callee);
    const ops::Operator* const builtin = call.name_space.empty() ? ops::FindBuiltin(call.name) : nullptr;
    if (builtin == nullptr) return false;
    switch (builtin->form) {
      case ops::CallForm::kPrint:
      case ops::CallForm::kWrite:
      case ops::CallForm::kStop:
      case ops::CallForm::kAssert: return false;
      default: return true;
    }
  }

  const ScriptSet& scripts_;
  std::map<const FunctionDefinition*, bool> only_computes_;
};

}  // namespace

void WarnOfUnusedResults(const ScriptSet& scripts, const ScriptFile& file,
                         const std::vector<Statement>& statements, const Warner& warn) {
  Effects effects(scripts);
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
