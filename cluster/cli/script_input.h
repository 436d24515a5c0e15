// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cluster/cli/arguments.h"
#include "compiler/compile.h"
#include "core/programs/program.h"
#include "engine/session/session.h"

namespace heddle::cluster::cli {

/// Options that every verb which takes a script understands; what plans depend on, which explain takes too;
/// and both with the rest of run, sim and job submit.
std::vector<Option> ScriptOptions();
std::vector<Option> PlanOptions();
std::vector<Option> RunOptions();

/// A script as the command line gave it: a file, -e CODE, or - (standard input), with its parameters.
struct ScriptInput {
  std::string name;  ///< For messages: the path as given, "-e" or "-".
  std::string text;
  std::map<std::string, std::string> parameters;
};

/// kUsage without a script or with two; kNotFound (exit 4) for a file or standard input that cannot be read.
Result<ScriptInput> ReadScript(const Arguments& arguments);

/// The library folders of --library, then those of HEDDLE_LIBRARY_PATH (separated by colons). kNotFound for
/// one of --library that is no folder; a path in the environment may name folders that this machine lacks.
Result<std::vector<std::string>> ReadLibraries(const Arguments& arguments);

/// What the compiler needs to know of a script; `loader` looks for what it sources. kUsage for an unknown
/// --disable-pass.
Result<compiler::CompileOptions> ReadCompileOptions(const ScriptInput& script, const Arguments& arguments,
                                                    compiler::SourceLoader* loader);

/// Parses, builds and checks; prints warnings to stderr (not with --json or --no-warnings). `diagnostics`, if
/// given, has them all, and that is all that is asked for: the passes do not run.
Result<Program> Compile(const ScriptInput& script, const Arguments& arguments,
                        compiler::Diagnostics* diagnostics = nullptr);

/// --threads, --min-distributed-bytes, --memory, --seed, --cpu, --disable-pass, --fusion; and the constants
/// of the cost model where this machine has measured them.
Result<engine::SessionOptions> ReadSessionOptions(const Arguments& arguments);
/// --workers of sim and explain; 1 when it was not given.
Result<int> ReadWorkers(const Arguments& arguments);
/// Makes this process use the kernels of its first worker; kUsage for those of any that this machine lacks.
Status UseCpu(const engine::SessionOptions& options);

/// Where relative paths begin; "" when that folder was deleted.
std::string WorkingDirectory();

}  // namespace heddle::cluster::cli
