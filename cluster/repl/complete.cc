// SPDX-License-Identifier: Apache-2.0
#include "cluster/repl/complete.h"

#include <algorithm>
#include <filesystem>

#include "cluster/repl/commands.h"
#include "compiler/build/body_builder.h"
#include "compiler/help/function_help.h"
#include "ops/base/operator.h"
#include "ops/base/operator_traits.h"

namespace heddle::cluster {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWords[] = {"if",     "else",   "for",   "parfor", "while", "in",   "function",
                                       "return", "source", "setwd", "TRUE",   "FALSE", "ifdef"};

bool IsNameCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == ':';
}

// Where "::" is between a namespace and the word at the end of the text; npos where there is none.
size_t NameSpaceAt(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0 && IsNameCharacter(text[begin - 1]) && text[begin - 1] != ':') --begin;
  return begin > 2 && text.substr(begin - 2, 2) == "::" ? begin - 2 : std::string_view::npos;
}

// Where the string that is open at the end of the text begins, behind its quote; npos when none is.
size_t OpenString(std::string_view text) {
  char quote = 0;
  size_t begin = std::string_view::npos;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\') {
        ++i;
      } else if (c == quote) {
        quote = 0;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      begin = i + 1;
    } else if (c == '#') {
      return std::string_view::npos;
    }
  }
  return quote != 0 ? begin : std::string_view::npos;
}

// The name of the function whose call is open at the end of the text; "" when none is.
std::string_view OpenCall(std::string_view text) {
  int closed = 0;
  for (size_t i = text.size(); i-- > 0;) {
    if (text[i] == ')' || text[i] == ']') ++closed;
    if (text[i] != '(' && text[i] != '[') continue;
    if (closed-- > 0) continue;
    if (text[i] == '[') return "";
    size_t begin = i;
    while (begin > 0 && IsNameCharacter(text[begin - 1])) --begin;
    return text.substr(begin, i - begin);
  }
  return "";
}

void AddFiles(std::string_view path, std::vector<std::string>* words) {
  const size_t slash = path.rfind('/');
  const std::string folder(slash == std::string_view::npos ? "" : path.substr(0, slash + 1));
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  std::error_code error;
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string file = entry->path().filename().string();
    if (!file.starts_with(name) || (name.empty() && file.starts_with('.'))) continue;
    std::error_code ignored;
    words->push_back(folder + file + (entry->is_directory(ignored) ? "/" : ""));
  }
}

void AddLibrary(const engine::InteractiveSession& session, std::vector<std::string>* words) {
  std::vector<std::string> folders = {"scripts/builtin"};
  for (const std::string& library : session.libraries())
    folders.insert(folders.end(), {library, library + "/builtin", library + "/scripts/builtin"});
  for (std::string& name : compiler::LibraryFunctionNames()) words->push_back(std::move(name));
  for (const std::string& folder : folders) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
      if (entry->path().extension() == ".dml") words->push_back(entry->path().stem().string());
  }
}

void AddArguments(std::string_view function, const engine::InteractiveSession& session,
                  std::vector<std::string>* words) {
  if (const ops::Operator* builtin = ops::FindBuiltin(function))
    for (const ops::OperatorParameter& parameter : ops::ParseParameters(builtin->parameters))
      words->push_back(std::string(parameter.name) + "=");
  if (const compiler::LibraryFile* const file = compiler::FindLibraryFunction(function))
    if (const Result<compiler::FunctionHelp> help = compiler::HelpOf(*file); help.ok())
      for (const compiler::FunctionHelp::Parameter& argument : help->arguments)
        words->push_back(argument.name + "=");
  for (const engine::Definitions::FunctionHead& head : session.definitions().functions())
    if (head.name == function)
      for (const std::string& parameter : head.parameters) words->push_back(parameter + "=");
}

}  // namespace

std::string Completions::Common() const {
  if (words.empty()) return "";
  std::string common = words.front();
  for (const std::string& word : words) {
    size_t same = 0;
    while (same < std::min(common.size(), word.size()) && common[same] == word[same]) ++same;
    common.resize(same);
  }
  return common;
}

Completions Complete(std::string_view text, const engine::InteractiveSession& session) {
  Completions found;
  const size_t quoted = OpenString(text);
  const bool is_command = text.starts_with(':');
  if (quoted != std::string_view::npos) {
    found.begin = quoted;
    AddFiles(text.substr(quoted), &found.words);
  } else if (is_command && text.find(' ') == std::string_view::npos) {
    for (const Command& command : Commands()) found.words.emplace_back(command.name);
  } else if (text.starts_with(":load ")) {
    found.begin = text.find_first_not_of(' ', 6);
    if (found.begin == std::string_view::npos) found.begin = text.size();
    AddFiles(text.substr(found.begin), &found.words);
  } else if (const size_t colons = NameSpaceAt(text); colons != std::string_view::npos) {
    size_t begin = colons;
    while (begin > 0 && IsNameCharacter(text[begin - 1])) --begin;
    found.begin = colons + 2;
    found.words = session.FunctionsOf(text.substr(begin, colons - begin));
  } else {
    found.begin = text.size();
    while (found.begin > 0 && IsNameCharacter(text[found.begin - 1]) && !(is_command && found.begin == 1))
      --found.begin;
    for (const auto& [name, variable] : session.variables().variables()) found.words.push_back(name);
    for (const engine::Definitions::FunctionHead& head : session.definitions().functions())
      found.words.push_back(head.name);
    for (const std::string& name : session.definitions().name_spaces()) found.words.push_back(name + "::");
    for (const std::string& name : ops::BuiltinNames()) found.words.push_back(name);
    for (const std::string_view name : compiler::kListBuiltins) found.words.emplace_back(name);
    for (const std::string_view word : kWords) found.words.emplace_back(word);
    AddLibrary(session, &found.words);
    AddArguments(OpenCall(text.substr(0, found.begin)), session, &found.words);
  }
  const std::string_view word = text.substr(found.begin);
  std::erase_if(found.words, [&](const std::string& candidate) { return !candidate.starts_with(word); });
  std::sort(found.words.begin(), found.words.end());
  found.words.erase(std::unique(found.words.begin(), found.words.end()), found.words.end());
  return found;
}

}  // namespace heddle::cluster
