// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cluster/executor/executor_process.h"
#include "core/status.h"

// What the kernel keeps an executor of a job from, and the process that compiles its script, whatever the
// script or a fault of ours makes it try: it gets no more rights than it begins with (no_new_privs), opens
// files in the folders of its job and in those that Heddle itself needs and no others (Landlock, since Linux
// 5.13), and makes no system call that no executor needs (seccomp).
namespace heddle::cluster {

/// What this kernel offers of it: "no_new_privs, landlock 7, seccomp"; "no_new_privs, no landlock, seccomp".
std::string DescribeIsolation();

/// With ExecutorStart::runs_as_owner: this process, which is root's, becomes one of the user called as the
/// owner of the job, with the groups and the home of that one. kFailedPrecondition where there is no such
/// user, or it is one of the system (below 1000).
Status BecomeOwner(const ExecutorStart& start);

/// With ExecutorStart::is_isolated: from now on all of the above holds for this thread and those that it
/// starts, and for its children. What the kernel lacks is left out. The folders of the job that are missing
/// are made, as none can be allowed later. kUnavailable where the kernel has it and refuses.
Status Isolate(const ExecutorStart& start);

/// The same for a process that compiles for the executors of a job, whatever `is_isolated` says: it reads in
/// the folders of the job, where they are on this machine, and changes no file at all.
Status IsolateCompiler(const ExecutorStart& start);

}  // namespace heddle::cluster
