// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "proto/compile.pb.h"

// The inside of a process that compiles one script for the master.
namespace heddle::cluster {

/// Compiles the script and makes the plans that travel with the job. What is wrong with the script goes into
/// the answer's status, in the words of `heddle check`.
CompileReply CompileForMaster(const CompileRequest& request);

/// `heddle compiler --control-fd N`: reads a request from the socket, takes the limits that it names, answers
/// and returns the exit code. Dies with the thread that started the process.
int RunCompiler(int control_fd);

}  // namespace heddle::cluster
