// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "cluster/cli/report.h"
#include "cluster/cli/script_input.h"
#include "cluster/cli/verb.h"
#include "cluster/language_server/language_server.h"
#include "compiler/library/library_files.h"
#include "ops/io/files/own_folders.h"

namespace heddle::cluster::cli {
namespace {

// Where functions of the library are shown as files: ~/.cache/heddle/library/FINGERPRINT.
std::string LibraryFolder() {
  const std::string cache = ops::UserCacheFolder();
  return cache.empty() ? "" : fmt::format("{}/library/{:016x}", cache, compiler::LibraryFingerprint());
}

Result<LanguageServerSettings> ReadSettings(const Arguments& arguments) {
  engine::Script script;
  HEDDLE_ASSIGN_OR_RETURN(script.parameters, ScriptParameters(arguments));
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<engine::Engine> engine, MakeEngine(arguments));
  LanguageServerSettings settings;
  settings.check.compile = engine->CompileOptionsOf(script, nullptr);
  settings.check.root = WorkingDirectory();
  settings.min_distributed_bytes = engine->options().session.min_distributed_bytes;
  settings.library_folder = LibraryFolder();
  return settings;
}

int Run(const Arguments& arguments) {
  Result<LanguageServerSettings> settings = ReadSettings(arguments);
  if (!settings.ok()) return Report(settings.status());
  if (isatty(STDIN_FILENO) != 0)
    std::fputs("heddle lsp is started by an editor, which speaks to it (docs/editor.md); Ctrl-D ends it\n",
               stderr);
  // Standard output is the protocol's alone: whatever else is printed goes to standard error.
  const int output = dup(STDOUT_FILENO);
  if (output < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    return Report(ResourceExhausted("cannot use standard output for the protocol"));
  std::signal(SIGPIPE, SIG_IGN);  // an editor that is gone ends the input as well
  return ServeEditor(STDIN_FILENO, output, *std::move(settings));
}

constexpr Option kOptions[] = {
    {"stdio", Option::Kind::kFlag, "", "speak over standard input and output, as it always does"},
    {"library", Option::Kind::kValue, "DIR", "folder of functions written in DML; may be given again"},
    {"args", Option::Kind::kRest, "V...", "values of $1, $2, ...; takes the rest of the line"},
    {"nvargs", Option::Kind::kRest, "K=V...", "values of $K; takes the rest of the line"},
};

}  // namespace

const Verb kLspVerb = {"lsp",
                       "serve an editor: errors while typing, completion, hover (Language Server Protocol)",
                       "lsp [--library DIR] [-args V... | -nvargs K=V...]",
                       JoinOptions({kOptions}),
                       "heddle lsp",
                       Run};

}  // namespace heddle::cluster::cli
