// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/compile.h"
#include "core/status.h"
#include "engine/control/local_run.h"
#include "engine/interactive/interactive_session.h"
#include "engine/report/run_record.h"
#include "engine/session/cancellation.h"
#include "engine/session/statistics.h"
#include "engine/variables/host_value.h"
#include "engine/variables/session_options.h"

// What a host program embeds (docs/embedding.md): scripts compiled and run in its process, with matrices and
// frames of its memory. The command line and every binding stand on it.
namespace heddle::engine {

/// How an engine works; the same for all that it runs. What this machine decides is filled in by
/// CompleteOptions().
struct EngineOptions {
  EngineOptions() { session.threads = 0; }

  /// Relative paths of scripts and libraries begin there; "": where the process stands when the engine is
  /// made.
  std::string directory;
  /// Folders of functions written in DML. Those of the environment variable HEDDLE_LIBRARY_PATH (separated by
  /// colons) come behind them.
  std::vector<std::string> libraries;
  /// What a message about an argument that is missing ($NAME) tells the user to do: "give it with ...".
  /// Empty: as on a command line.
  std::function<std::string(std::string_view name)> argument_hint;
  /// Of every run. threads 0: all cores; constants 0: those measured on this machine, else built-in ones.
  /// memory_bytes bounds what the process holds while something of this engine runs; of several at once the
  /// smallest counts. cpu is of the process: the last engine that states it decides for all.
  SessionOptions session;
  /// Told of what is not wrong but not as asked: one line, no line end. May be empty.
  std::function<void(std::string_view text)> warn;
};

/// Checks the options, and fills in what this machine decides. Changes nothing in the process. kUsage for a
/// value that an option does not take, kNotFound for a library or a spill folder that is no folder,
/// kResourceExhausted for a spill folder that takes no file; the message begins with the name of the option
/// ("fusion takes ...", "library: there is no folder ...").
Result<EngineOptions> CompleteOptions(EngineOptions options);

/// What the option `compress` says: "auto" has matrices that loops read stored by groups of columns where
/// that pays (docs/compression.md), "off", the default, only those of compress(). kUsage for another word, as
/// of CompleteOptions.
Status SetCompression(std::string_view mode, SessionOptions* session);

/// Whether the option `devices` may say that: "cpu", "auto" or "opencl:NUMBER", whatever this machine has.
/// kUsage for another word.
Status CheckDevices(std::string_view devices);

/// What the option `devices` says: "cpu", the default; "auto", what is faster on the fastest device of this
/// machine than on the processor; or "opencl:NUMBER", all that this device can run (docs/devices.md). kUsage
/// for another word, as of CompleteOptions.
Status SetDevices(std::string_view devices, SessionOptions* session);

/// A script and its parameters.
struct Script {
  std::string text;
  std::string name = "script.dml";  ///< For messages.
  std::map<std::string, std::string>
      parameters;  ///< Of $1, $2, ... or $NAME. Texts as a command line has them.
};

/// The surroundings of one run. All may be empty; none is called after the run has returned.
struct RunCallbacks {
  std::function<void(std::string_view text)> print;    ///< Output of the script, in order.
  std::function<void(std::string_view text)> warn;     ///< Warnings as they are shown, with line ends.
  std::function<void(std::string_view text)> observe;  ///< Every plan before it runs, as text.
  Cancellation* cancellation = nullptr;                ///< Request() from any thread ends the run.
};

using HostValues = std::map<std::string, HostValue>;

struct RunResults {
  HostValues outputs;
  SessionStatistics statistics;
  /// Of a run with SessionOptions::recorded_events: what engine/report/report.h makes a page of. Else
  /// nullptr.
  std::shared_ptr<const RunRecord> record;
};

/// Compiles and runs scripts in this process. Thread-safe: any number of runs and sessions at once, each as
/// if it were alone but for the budget of memory, which all share. Starts no thread before the first run;
/// every failure is a Status, with the place in the script where it has one.
class Engine {
 public:
  /// Errors of CompleteOptions(), and kUsage for a cpu that this machine is not. A device that is not there
  /// is the processor, with a warning.
  static Result<std::unique_ptr<Engine>> Create(EngineOptions options = {});

  /// Runs the script. It finds `inputs` as variables, beside nothing else, and its variables `outputs` are
  /// returned; others are given up as early as the script allows. Inputs are not copied (HostValue) and stay
  /// as they are. kInvalidArgument, with all that is wrong with the script, before anything runs: an output
  /// that nothing assigns as well; kFailedPrecondition for one that no statement which ran has assigned.
  Result<RunResults> Run(const Script& script, const HostValues& inputs = {},
                         const std::vector<std::string>& outputs = {},
                         const RunCallbacks& callbacks = {}) const;

  /// All that is wrong with a script, or questionable, without running it. `inputs` are variables that it
  /// would find.
  compiler::Diagnostics Check(const Script& script, const HostValues& inputs = {}) const;

  /// What the compiler makes of a script, as text: "ast", a stage of the compiler, "program", "recursion",
  /// "all", or for options().session "fusion", "cost", "codegen". Runs nothing. kUsage for another level.
  Result<std::string> Explain(const Script& script, std::string_view level = "program") const;

  /// Variables and functions that live on from one statement to the next. `callbacks` are those of all its
  /// statements, but for cancellation, which each is given. The session outlives the engine if it must.
  std::unique_ptr<InteractiveSession> NewSession(
      const RunCallbacks& callbacks = {}, const std::map<std::string, std::string>& parameters = {}) const;

  /// The first half of Run(), for whoever runs the program elsewhere. `diagnostics` has all warnings.
  Result<Program> Compile(const Script& script, compiler::Diagnostics* diagnostics) const;

  /// The record of a run of the script, from what the ranks have noted. Reads the files that it sourced.
  RunRecord RecordOf(const Script& script, const RunOutcome& outcome) const;

  /// What the compiler needs to know of a script; `loader`, which looks for what it sources, outlives its
  /// use.
  compiler::CompileOptions CompileOptionsOf(const Script& script, compiler::SourceLoader* loader) const;
  std::unique_ptr<compiler::SourceLoader> NewLoader() const;

  const EngineOptions& options() const { return options_; }

 private:
  explicit Engine(EngineOptions options) : options_(std::move(options)) {}

  const EngineOptions options_;
};

}  // namespace heddle::engine
