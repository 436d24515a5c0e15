// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

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

/// Who submits a job.
struct Submitter {
  std::string user;         ///< The job is his, and counts for his share of the workers.
  bool is_operator = true;  ///< May raise the priority of a job.
};
/// kPermissionDenied for a priority that is not for everybody.
Status CheckPriority(int priority, const Submitter& submitter);

/// Serves Jobs.Submit: compiles the script (outside the hub's lock, when its turn comes) and queues the job.
/// What is wrong with the script goes into reply->status, in the words of `heddle check`. `given_up` says
/// whether the caller still waits.
void ServeSubmit(MasterHub* hub, ScriptCompiler* compiler, const SubmitRequest& request,
                 const Submitter& submitter, const std::function<bool()>& given_up, SubmitReply* reply);

/// Serves Jobs.Progress.
void ServeProgress(const ScriptCompiler& compiler, const ProgressRequest& request, ProgressReply* reply);

}  // namespace heddle::cluster
