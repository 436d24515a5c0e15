// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "compiler/parse/ast.h"

namespace heddle::engine {

/// The text of a session: what has been defined so far (functions, source(), setwd()), each definition on the
/// line where it was entered, and blanks for everything else. Lines count from 1 through the session.
class Definitions {
 public:
  struct FunctionHead {
    std::string name;
    std::vector<std::string> parameters;
    std::string text;  ///< As it was written: "f = function(double x) return (double y)".
    int32_t line = 0;
  };

  /// The line that the next entry begins with.
  int32_t next_line() const { return next_line_; }
  /// The text of the session with `entry` as its last lines.
  std::string TextWith(const std::string& entry) const;
  /// `entry` has been read: its lines count. `parsed` is the tree of TextWith(entry), whose definitions in
  /// the lines of the entry take the place of older ones of the same name; nullptr: nothing of it is kept.
  void Add(const std::string& entry, const compiler::ScriptFile* parsed);
  /// Forgets what is defined; lines go on.
  void Clear();

  const std::vector<FunctionHead>& functions() const { return functions_; }
  /// Those of source().
  const std::vector<std::string>& name_spaces() const { return name_spaces_; }

 private:
  struct Definition {
    std::string name;  // of a function, or of a namespace with "::" behind it; "" of setwd()
    compiler::SourceRange range;
  };
  struct Entry {
    int32_t line = 0;  // where it begins
    std::string text;
    std::vector<Definition> definitions;  // those that hold
  };
  void Replace(Definition definition, Entry* entry);

  std::vector<Entry> entries_;  // with definitions
  std::vector<FunctionHead> functions_;
  std::vector<std::string> name_spaces_;
  int32_t next_line_ = 1;
};

}  // namespace heddle::engine
