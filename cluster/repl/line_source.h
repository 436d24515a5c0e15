// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/repl/complete.h"

namespace heddle::cluster {

/// Where the lines of a session come from.
class LineSource {
 public:
  enum class Outcome : uint8_t {
    kLine,
    kInterrupted,  ///< Ctrl-C: the line is not wanted.
    kEnd,          ///< Nothing follows (Ctrl-D), or the process is to end.
  };
  virtual ~LineSource() = default;
  /// The next line, or a whole entry of several lines that was taken out of the history; without the line
  /// end.
  virtual Outcome Read(const std::string& prompt, std::string* line) = 0;
  /// An entry that was complete, for the history.
  virtual void Remember(const std::string& entry) = 0;
  /// True if somebody sits in front of it.
  virtual bool IsTerminal() const = 0;
  /// Of what is no terminal: the line that Read() would give next, which stays; nullptr where none is left.
  virtual const std::string* Peek() { return nullptr; }
};

/// Lines of standard input when it is no terminal: no prompts. A final line may lack its end.
std::unique_ptr<LineSource> MakePipeLines();
/// Lines that the terminal itself collects, with prompts on standard output.
std::unique_ptr<LineSource> MakePlainLines();
/// Lines of a terminal with editing, history and completion (libedit). nullptr where this terminal is not fit
/// for that.
std::unique_ptr<LineSource> MakeEditedLines(std::string history_path,
                                            std::function<engine::Completions(std::string_view)> complete);

}  // namespace heddle::cluster
