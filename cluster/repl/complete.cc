// SPDX-License-Identifier: Apache-2.0
#include "cluster/repl/complete.h"

#include <algorithm>

#include "cluster/repl/commands.h"
#include "engine/interactive/complete_files.h"

namespace heddle::cluster {

engine::Completions Complete(std::string_view text, const engine::InteractiveSession& session) {
  constexpr std::string_view kLoad = ":load ";
  const bool is_command = text.starts_with(':') && text.find(' ') == std::string_view::npos;
  if (!is_command && !text.starts_with(kLoad)) return engine::CompleteEntry(text, session);
  engine::Completions found;
  if (is_command) {
    for (const Command& command : Commands())
      if (command.name.starts_with(text)) found.words.emplace_back(command.name);
  } else {
    found.begin = std::min(text.find_first_not_of(' ', kLoad.size()), text.size());
    found.words = engine::FilesBeginningWith(text.substr(found.begin), "");
  }
  std::sort(found.words.begin(), found.words.end());
  return found;
}

}  // namespace heddle::cluster
