// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/compile.h"
#include "engine/interactive/definitions.h"
#include "engine/session/cancellation.h"
#include "engine/session/session.h"
#include "engine/variables/host_value.h"
#include "ops/panels/panel_store.h"

namespace heddle::engine {

/// Variables and functions that live on from one statement to the next, each of which is compiled for them
/// and run by a session of its own (docs/repl.md). One thread.
class InteractiveSession {
 public:
  /// What messages call the text that is entered.
  static constexpr const char* kScript = "input";

  struct Options {
    compiler::CompileOptions compile;                ///< Without script, loader and continuation.
    std::shared_ptr<compiler::SourceLoader> loader;  ///< Where source() finds files.
    SessionOptions session;
    std::string directory;                             ///< Relative paths of statements; absolute itself.
    std::function<void(std::string_view text)> print;  ///< Output of statements and values of expressions.
    std::function<void(std::string_view text)> warn;   ///< Warnings as they are shown, with line ends.
  };

  explicit InteractiveSession(Options options);

  /// Runs one statement of the entry after the other. The first error ends it, and what has run before it
  /// stays. `cancellation` (nullptr: nobody asks) stops the statement that runs.
  Status Run(const std::string& entry, Cancellation* cancellation);
  /// The type and size of an expression as far as they are known without running it: "matrix 10x3".
  Result<std::string> TypeOf(const std::string& expression);
  /// What the compiler makes of an entry.
  Result<std::string> Explain(const std::string& entry);
  /// Gives a variable a value of the host program, or another one; errors of ToVariable().
  Status Set(const std::string& name, const HostValue& value);
  /// The value of a variable, whose rows are put together where they are not in memory. kNotFound where no
  /// variable has that name, kResourceExhausted with the numbers where its rows do not fit.
  Result<HostValue> Get(const std::string& name) const;
  /// Forgets variables and functions.
  void Clear();

  /// Functions of the file that a namespace is bound to.
  std::vector<std::string> FunctionsOf(std::string_view name_space) const;

  const VariableTable& variables() const { return variables_.frame; }
  const Definitions& definitions() const { return definitions_; }
  const std::string& directory() const { return options_.directory; }
  const std::vector<std::string>& libraries() const { return options_.compile.libraries; }

 private:
  // The statements of an entry in the text of the session.
  struct Parsed {
    std::string text;
    compiler::ScriptFile file;
    int32_t first_line = 0;       // of the entry
    size_t first = 0;             // statement of the entry
    std::set<std::string> names;  // variables among them are those that the entry may read
  };
  Result<Parsed> Parse(const std::string& entry) const;
  Status Define(const Parsed& parsed) const;
  compiler::CompileOptions OptionsFor(const Parsed& parsed, size_t first, size_t count) const;
  void Warn(const compiler::Diagnostics& diagnostics, compiler::Severity severity,
            const std::vector<compiler::SourceRange>& within) const;
  Result<Program> CompileStatement(const Parsed& parsed, size_t statement) const;
  Status RunStatement(const Parsed& parsed, size_t statement, Cancellation* cancellation);
  Status RunProgram(const Program& program, SessionVariables* variables, Cancellation* cancellation,
                    const std::function<void(std::string_view text)>& print) const;
  Result<HostValue> PutTogether(const std::string& name, const Variable& variable) const;
  Status Print(const Variable& value, Cancellation* cancellation) const;

  Options options_;
  Definitions definitions_;
  // Rows of variables that memory has no room for: they outlive the statement that made them.
  std::unique_ptr<ops::SpillFiles> spill_files_;
  std::unique_ptr<ops::PanelStore> panels_;
  SessionVariables variables_;
};

}  // namespace heddle::engine
