// SPDX-License-Identifier: Apache-2.0
#include "cluster/cli/data_roots.h"

#include <filesystem>

#include "cluster/executor/start_limits.h"
#include "compiler/parse/lexer.h"

namespace heddle::cluster::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNamedPaths = 1000;

std::string Absolute(const std::string& path, const std::string& directory) {
  return (fs::path(directory) / path).lexically_normal().string();
}

}  // namespace

Result<std::vector<std::string>> ReadDataRoots(const Arguments& arguments) {
  std::vector<std::string> roots;
  for (const std::string& root : arguments.rest(kDataRootOption.name)) {
    std::error_code error;
    if (root.empty() || !fs::is_directory(root, error))
      return NotFound("--data-root: there is no folder '{}'", root);
    roots.push_back(Absolute(root, WorkingDirectory()));
  }
  return roots;
}

std::vector<std::string> ClosedPaths(const Arguments& arguments, std::initializer_list<const char*> options,
                                     const std::string& listen) {
  constexpr std::string_view kSocket = "unix:";
  std::vector<std::string> paths;
  for (const char* option : options)
    if (const auto path = arguments.Value(option)) paths.push_back(Absolute(*path, WorkingDirectory()));
  if (listen.starts_with(kSocket)) paths.push_back(listen.substr(kSocket.size()));
  return paths;
}

std::vector<std::string> NamedRoots(const Arguments& arguments, const std::string& directory) {
  std::vector<std::string> roots;
  for (const std::string& root : arguments.rest(kDataRootOption.name))
    if (!root.empty()) roots.push_back(Absolute(root, directory));
  return roots;
}

std::vector<std::string> NamedPaths(const engine::Script& script, const std::string& directory) {
  std::vector<std::string> paths;
  const auto add = [&](const std::string& text) {
    const bool is_short = text.size() < kMostPathBytes - directory.size();
    if (text.empty() || !is_short || text.find('\0') != std::string::npos || paths.size() == kMostNamedPaths)
      return;
    // A word that is no path names nothing else than what the working folder holds; where it is a link there,
    // it names what that leads to.
    std::error_code error;
    std::string path = Absolute(text, directory);
    if (text.find('/') != std::string::npos || fs::is_symlink(path, error)) paths.push_back(std::move(path));
  };
  for (const auto& [name, value] : script.parameters) add(value);
  if (script.name == "-e")
    for (const compiler::Token& token : compiler::Tokenize(script.text))
      if (token.kind == compiler::Token::Kind::kLiteral && token.value.IsString())
        add(token.value.AsString());
  return paths;
}

}  // namespace heddle::cluster::cli
