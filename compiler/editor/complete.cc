// SPDX-License-Identifier: Apache-2.0
#include "compiler/editor/complete.h"

#include <algorithm>
#include <set>
#include <utility>

#include "compiler/build/body_builder.h"
#include "compiler/help/function_help.h"
#include "ops/base/operator.h"
#include "ops/base/operator_traits.h"

namespace heddle::compiler {
namespace {

using Kind = Candidate::Kind;

constexpr std::string_view kWords[] = {"if",     "else",   "for",   "parfor", "while", "in",   "function",
                                       "return", "source", "setwd", "TRUE",   "FALSE", "ifdef"};

void Add(Kind kind, std::vector<std::string> texts, std::vector<Candidate>* candidates) {
  for (std::string& text : texts) candidates->push_back({kind, std::move(text)});
}

std::vector<std::string> ArgumentsOf(std::string_view function, const KnownNames& known) {
  std::vector<std::string> names;
  if (known.parameters) names = known.parameters(function);
  if (!names.empty()) return names;
  if (const ops::Operator* const builtin = ops::FindBuiltin(function))
    for (const ops::OperatorParameter& parameter : ops::ParseParameters(builtin->parameters))
      names.emplace_back(parameter.name);
  if (const LibraryFile* const file = FindLibraryFunction(function))
    if (const Result<FunctionHelp> help = HelpOf(*file); help.ok())
      for (const FunctionHelp::Parameter& argument : help->arguments) names.push_back(argument.name);
  return names;
}

std::vector<Candidate> NamesFor(const WritingContext& context, const KnownNames& known) {
  std::vector<Candidate> candidates;
  if (context.call)
    for (const std::string& name : ArgumentsOf(context.call->name, known))
      candidates.push_back({Kind::kArgument, name + "="});
  Add(Kind::kVariable, known.variables, &candidates);
  Add(Kind::kFunction, known.functions, &candidates);
  for (const std::string& name : known.name_spaces) candidates.push_back({Kind::kNameSpace, name + "::"});
  Add(Kind::kBuiltin, ops::BuiltinNames(), &candidates);
  for (const std::string_view name : kListBuiltins) candidates.push_back({Kind::kBuiltin, std::string(name)});
  for (const std::string_view name : kOtherCalls) candidates.push_back({Kind::kBuiltin, std::string(name)});
  Add(Kind::kLibrary, LibraryFunctionNames(), &candidates);
  Add(Kind::kLibrary, known.library, &candidates);
  for (const std::string_view word : kWords) candidates.push_back({Kind::kWord, std::string(word)});
  return candidates;
}

}  // namespace

std::vector<Candidate> Complete(std::string_view text, const WritingContext& context,
                                const KnownNames& known) {
  const std::string_view word = text.substr(context.begin);
  std::vector<Candidate> candidates;
  switch (context.kind) {
    case WritingContext::Kind::kNothing: return {};
    case WritingContext::Kind::kText:
      if (known.files)
        for (std::string& path : known.files(word))
          candidates.push_back({path.ends_with('/') ? Kind::kFolder : Kind::kFile, std::move(path)});
      break;
    case WritingContext::Kind::kMember:
      if (known.members) Add(Kind::kFunction, known.members(context.name_space), &candidates);
      break;
    case WritingContext::Kind::kName: candidates = NamesFor(context, known); break;
  }
  std::erase_if(candidates, [&](const Candidate& candidate) { return !candidate.text.starts_with(word); });
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  // A name has one kind: the first, which is the one that a call would mean.
  std::vector<Candidate> first;
  std::set<std::string> texts;
  for (Candidate& candidate : candidates)
    if (texts.insert(candidate.text).second) first.push_back(std::move(candidate));
  return first;
}

}  // namespace heddle::compiler
