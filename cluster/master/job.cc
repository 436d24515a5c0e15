// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/job.h"

#include <algorithm>
#include <array>
#include <bit>
#include <nlohmann/json.hpp>

#include "cluster/placement/device_of_job.h"

namespace heddle::cluster {
namespace {

using State = JobState;

constexpr std::array<std::string_view, 9> kNames = {"QUEUED",    "ADMITTED",   "STARTING",
                                                    "RUNNING",   "RECOVERING", "CANCELLING",
                                                    "SUCCEEDED", "FAILED",     "CANCELLED"};

constexpr std::pair<State, State> kLegal[] = {
    {State::kQueued, State::kAdmitted},      {State::kQueued, State::kCancelled},
    {State::kQueued, State::kFailed},        {State::kAdmitted, State::kStarting},
    {State::kAdmitted, State::kRecovering},  {State::kAdmitted, State::kCancelling},
    {State::kAdmitted, State::kFailed},      {State::kStarting, State::kRunning},
    {State::kStarting, State::kRecovering},  {State::kStarting, State::kCancelling},
    {State::kStarting, State::kFailed},      {State::kRunning, State::kSucceeded},
    {State::kRunning, State::kFailed},       {State::kRunning, State::kRecovering},
    {State::kRunning, State::kCancelling},   {State::kRecovering, State::kAdmitted},
    {State::kRecovering, State::kStarting},  {State::kRecovering, State::kRunning},
    {State::kRecovering, State::kFailed},    {State::kRecovering, State::kCancelling},
    {State::kRecovering, State::kCancelled}, {State::kRecovering, State::kRecovering},
    {State::kCancelling, State::kCancelled},
};

}  // namespace

std::string_view Name(JobState state) { return kNames[static_cast<size_t>(state)]; }

std::optional<JobState> ParseJobState(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<JobState>(found - kNames.begin());
}

bool IsFinal(JobState state) {
  return state == State::kSucceeded || state == State::kFailed || state == State::kCancelled;
}

Demand DemandOf(const JobSpecification& specification) {
  const auto seconds = static_cast<uint64_t>(std::max<int64_t>(0, specification.deadline_ms / 1000));
  const int64_t memory_bytes = specification.options.memory_bytes;
  return {.workers = specification.workers_wanted,
          .threads = specification.options.threads,
          .memory_bytes = memory_bytes > 0 ? memory_bytes : specification.plan_bytes,
          .digits_of_deadline = static_cast<int>(std::bit_width(seconds)),
          .device = DeviceIn(specification.options.devices)};
}

bool IsLegalTransition(JobState from, JobState to) {
  return std::find(std::begin(kLegal), std::end(kLegal), std::pair(from, to)) != std::end(kLegal);
}

std::string TextOfCheckpoints(const std::vector<JobCheckpoint>& checkpoints) {
  nlohmann::json json = nlohmann::json::array();
  for (const JobCheckpoint& checkpoint : checkpoints)
    json.push_back({{"name", checkpoint.name},
                    {"ranks", checkpoint.ranks},
                    {"printed", checkpoint.printed},
                    {"taken_ms", checkpoint.taken_ms}});
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<JobCheckpoint> ToCheckpoints(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  std::vector<JobCheckpoint> checkpoints;
  if (!json.is_array()) return checkpoints;
  for (const auto& entry : json)
    if (entry.is_object())
      checkpoints.push_back({.name = entry.value("name", ""),
                             .ranks = entry.value("ranks", 1),
                             .printed = entry.value("printed", int64_t{0}),
                             .taken_ms = entry.value("taken_ms", int64_t{0})});
  return checkpoints;
}

}  // namespace heddle::cluster
