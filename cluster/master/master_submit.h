// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "cluster/access/token_store.h"
#include "cluster/compiling/compile_process.h"
#include "cluster/compiling/compile_queue.h"
#include "cluster/compiling/compiled_scripts.h"
#include "cluster/master/master_hub.h"
#include "proto/master.pb.h"

namespace heddle::cluster {

/// Who compiles for a master, when, and with what.
struct ScriptCompiler {
  CompileQueue queue;
  CompileLimits limits;
  CompiledScripts scripts;
};

/// kPermissionDenied for a priority that is not for everybody.
Status CheckPriority(int priority, const Caller& caller);

/// Serves Jobs.Submit: compiles the script (outside the hub's lock, when its turn comes) and queues the job
/// as one of the caller's owner.
/// What is wrong with the script goes into reply->status, in the words of `heddle check`. `given_up` says
/// whether the caller still waits.
void ServeSubmit(MasterHub* hub, ScriptCompiler* compiler, const Caller& caller, const SubmitRequest& request,
                 const std::function<bool()>& given_up, SubmitReply* reply);

/// Serves Jobs.Progress.
void ServeProgress(const ScriptCompiler& compiler, const Caller& caller, const ProgressRequest& request,
                   ProgressReply* reply);

}  // namespace heddle::cluster
