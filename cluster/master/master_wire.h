// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cluster/master/job.h"
#include "cluster/master/job_attempt.h"
#include "cluster/master/master_core.h"
#include "cluster/placement/membership.h"
#include "proto/master.pb.h"

// Between the master's own values and the messages of proto/master.proto.
namespace heddle::cluster {

void ToProto(const Job& job, JobDescription* proto);
void ToProto(const JobTransition& transition, Transition* proto);
void ToProto(const Worker& worker, int64_t now_ns, NodeDescription* proto);
void ToProto(const WorkerOrder& order, ExecutorOrder* proto);
void ToProto(const SweepOrder& order, Sweep* proto);
void ToProto(const WorkerDescription& worker, WorkerIntroduction* proto);
void ToProto(const ExecutorNews& news, ExecutorReport* proto);

/// Without version, which is the caller's.
WorkerDescription FromProto(const WorkerIntroduction& proto);
/// kDataLoss when malformed.
Result<ExecutorNews> FromProto(const ExecutorReport& proto);
engine::SessionOptions FromProto(const SubmitOptions& proto);

}  // namespace heddle::cluster
