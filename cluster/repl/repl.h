// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "cluster/repl/line_source.h"
#include "engine/interactive/interactive_session.h"

namespace heddle::cluster {

/// Reads entries from a source of lines and runs them until it ends (docs/repl.md).
class Repl {
 public:
  struct Surroundings {
    std::function<void(std::string_view text)> print;  ///< Standard output.
    std::function<int(const Status& status)> report;   ///< Shows an error and returns its exit code.
  };

  /// All outlive it.
  Repl(engine::InteractiveSession* session, LineSource* lines, Surroundings surroundings)
      : session_(*session), lines_(*lines), surroundings_(std::move(surroundings)) {}

  /// Runs the statements of a file, as :load does.
  void TellOf(const std::string& function);
  void Load(const std::string& path);
  /// Returns the exit code: 0 where somebody sat in front of it, else that of the first error.
  int Run();

 private:
  // An entry that is complete, or a line that begins with ":".
  void Handle(const std::string& entry);
  void HandleCommand(const std::string& line);
  void RunEntry(const std::string& entry, const std::string& note = "");
  void ListVariables() const;
  bool GoesOnWithElse(const std::string& entry) const;
  std::string PromptFor(const std::string& entry) const;
  void Report(const Status& status);

  engine::InteractiveSession& session_;
  LineSource& lines_;
  const Surroundings surroundings_;
  bool is_over_ = false;
  int first_error_ = 0;  // Exit code.
};

}  // namespace heddle::cluster
