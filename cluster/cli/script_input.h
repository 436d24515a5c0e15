// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cluster/cli/arguments.h"
#include "core/programs/program.h"
#include "engine/engine.h"

namespace heddle::cluster::cli {

/// Options that every verb which takes a script understands; what plans depend on, which explain takes too;
/// and both with the rest of run, sim and job submit.
std::vector<Option> ScriptOptions();
std::vector<Option> PlanOptions();
std::vector<Option> RunOptions();

/// A script as the command line gave it: a file, -e CODE (its name is "-e"), or - (standard input), with its
/// parameters. kUsage without a script or with two; kNotFound (exit 4) for a file or standard input that
/// cannot be read.
Result<engine::Script> ReadScript(const Arguments& arguments);

/// The text of a script's file; kNotFound when there is none.
Result<std::string> ReadScriptFile(const std::string& name);
/// All of standard input, but for what is longer than a script may be; kNotFound when it cannot be read.
Result<std::string> ReadStandardInput();

/// What the options of the command line make of an engine; checked, and completed for this machine. An error
/// names the option as it is written.
Result<engine::EngineOptions> ReadEngineOptions(const Arguments& arguments, int ranks = 1);
/// The engine of this process. Warns of more memory than there is.
Result<std::unique_ptr<engine::Engine>> MakeEngine(const Arguments& arguments, int ranks = 1);

/// Parses, builds and checks; prints warnings to stderr (not with --json or --no-warnings). All that was
/// found is in `diagnostics`.
Result<Program> Compile(const engine::Engine& engine, const engine::Script& script,
                        const Arguments& arguments, compiler::Diagnostics* diagnostics);

/// --workers of sim and explain; 1 when it was not given.
Result<int> ReadWorkers(const Arguments& arguments);

/// Where relative paths begin; "" when that folder was deleted.
std::string WorkingDirectory();

}  // namespace heddle::cluster::cli
