// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "cluster/cli/arguments.h"
#include "core/status.h"

namespace heddle::cluster::cli {

/// Prints a failure to stderr ("heddle: error: ..." or, with a place in the script, "file:line:column: error:
/// ...") and returns its exit code. Nothing is printed for Ok.
int Report(const Status& status);
/// The same; with --json the outcome, Ok too, as an object instead.
int ReportOutcome(const Arguments& arguments, const Status& status);
void Warn(std::string_view text);
/// Ends the process: prints the outcome as ReportOutcome does, with what was printed before it whole. No file
/// takes its place from then on and no temporary one is left (ops/io/files/replacement.h). For a process
/// whose work cannot be stopped.
[[noreturn]] void EndProcess(const Arguments& arguments, const Status& status);
/// Writes to standard output at once, whole; the script's own output goes here. False when it could not be
/// written; OutputStatus() tells why from then on.
bool PrintOutput(std::string_view text);
/// kResourceExhausted when something could not be written to standard output.
Status OutputStatus();
/// The outcome as one JSON line on stderr (--json): {"code": 1, "kind": "...", "message": "...", "file": ...,
/// "line": ...}.
std::string OutcomeJson(const Status& status);

}  // namespace heddle::cluster::cli
