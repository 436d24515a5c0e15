// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/placement/resources.h"
#include "core/status.h"
#include "engine/session/session.h"

namespace heddle::cluster {

/// Where a job stands (runtime reference 5.3). There is no separate state for committing: ranks replace
/// output files whole.
enum class JobState : uint8_t {
  kQueued,      ///< Durable; waits for workers.
  kAdmitted,    ///< Has its workers.
  kStarting,    ///< Executors are being started.
  kRunning,     ///< All executors are linked.
  kRecovering,  ///< An attempt was lost; the next one waits for workers, or workers are expected to report.
  kCancelling,  ///< Executors are being stopped.
  kSucceeded,
  kFailed,
  kCancelled,
};
std::string_view Name(JobState state);  ///< "QUEUED", ...
std::optional<JobState> ParseJobState(std::string_view name);
bool IsFinal(JobState state);
/// True if a job may go from one state to the other.
bool IsLegalTransition(JobState from, JobState to);

constexpr int kHighestPriority = 100;  ///< The lowest is its negative.
constexpr int64_t kLongestDeadlineMs = int64_t{366} * 24 * 3'600'000;
constexpr int64_t kDefaultRetryForMs = 24 * 3'600'000;
constexpr int64_t kLongestRetryForMs = int64_t{366} * 24 * 3'600'000;

/// A checkpoint of which the objects of all ranks are durable (docs/recovery.md).
struct JobCheckpoint {
  std::string name;      ///< In the store.
  int ranks = 1;         ///< That wrote it.
  int64_t printed = 0;   ///< Bytes of standard output before it; they are all here.
  int64_t taken_ms = 0;  ///< When it was complete, by the wall clock.
};

/// How a store keeps them: a JSON array of an object each.
std::string TextOfCheckpoints(const std::vector<JobCheckpoint>& checkpoints);
/// None of a text that is no array; entries that are no objects are left out.
std::vector<JobCheckpoint> ToCheckpoints(const std::string& text);

/// What was submitted; never changes.
struct JobSpecification {
  std::string request_id;  ///< Of the client; unique among those of an owner.
  /// Of the token that it was submitted with: users share the workers fairly. "" in stores of before there
  /// were owners.
  std::string owner;
  std::string digest;     ///< Of what the client asked for, without request_id; "" when it is not known.
  std::string script;     ///< Name, for people.
  std::string program;    ///< Program::ToText().
  std::string directory;  ///< Where relative paths start.
  std::vector<std::string> data_roots;   ///< Folders that it may use beside `directory`.
  std::vector<std::string> named_paths;  ///< Paths among its arguments.
  int workers_wanted = 0;                ///< 0: all that are alive.
  int priority = 0;                      ///< Jobs of a higher one start first.
  /// How long after it was submitted the job has to be finished, or it fails; 0: no such time.
  int64_t deadline_ms = 0;
  /// How long after the first loss of a machine the job is still started again; 0: a loss ends it.
  int64_t retry_for_ms = kDefaultRetryForMs;
  /// From one checkpoint to the next; 0: by cost; ExecutorCheckpoints::kNever: none are taken.
  int64_t checkpoint_ms = 0;
  /// Memory of a rank that its plans take, with a margin, where they tell; 0 where they do not, and when it
  /// was not enough.
  int64_t plan_bytes = 0;
  int64_t planned_bytes = 0;  ///< Memory for which options.plans were made; not stored, as they are not.
  engine::SessionOptions
      options;  ///< rank open; ranks: those of its plans; threads 0: what each worker has; seed drawn.

  /// Of a job that ended: what nobody needs any more.
  void DropProgram() {
    program.clear();
    options.plans.clear();
  }
};

/// What it asks for.
Demand DemandOf(const JobSpecification& specification);

/// A job as the store keeps it.
struct Job {
  std::string id;  ///< "j17"
  JobSpecification specification;
  JobState state = JobState::kQueued;
  int attempt = 0;                   ///< 0 before the first.
  int64_t epoch = 0;                 ///< Of the attempt: above that of every attempt before it, of all jobs.
  int crashes = 0;                   ///< Attempts that ended because an executor broke by itself.
  int losses = 0;                    ///< Attempts that ended because a machine or its process was taken away.
  int64_t first_loss_ms = 0;         ///< When the first of these losses was, by the wall clock.
  std::string reason;                ///< Why it is in that state; for people.
  std::vector<std::string> workers;  ///< uuid by rank, of the current or last attempt.
  std::vector<std::string> worker_names;
  std::vector<Share> shares;            ///< Of these workers; by rank.
  Status outcome;                       ///< Of a final state.
  std::vector<std::string> statistics;  ///< JSON by rank, of a final state.
  int64_t submitted_ms = 0;
  int64_t finished_ms = 0;
  int64_t output_bytes = 0;                ///< Of standard output that is kept.
  std::vector<JobCheckpoint> checkpoints;  ///< To go on from; the latest is the last.
  int resumed = 0;                         ///< Attempts that began with one.
  std::string note;         ///< What it asked for and this attempt runs without; for people. Not stored.
  bool is_held_up = false;  ///< Its next state cannot be stored, as `reason` tells; not stored itself.

  /// Nothing happens until what `reason` tells is there.
  bool Waits() const { return is_held_up || state == JobState::kQueued || state == JobState::kRecovering; }

  static constexpr int64_t kNever = INT64_MAX;
  /// When it has to be finished, by the wall clock, for people; kNever without a deadline.
  int64_t EndsByMs() const {
    return specification.deadline_ms > 0 ? submitted_ms + specification.deadline_ms : kNever;
  }
};

struct JobTransition {
  JobState state = JobState::kQueued;
  int attempt = 0;
  std::string reason;
  int64_t time_ms = 0;
};

}  // namespace heddle::cluster
