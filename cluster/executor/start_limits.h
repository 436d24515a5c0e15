// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cluster/executor/executor_process.h"
#include "core/status.h"

// What may stand in the options of a job and in the first message to an executor, and the checks of single
// fields: kInvalidArgument names the field, its value and its limits.
namespace heddle::cluster {

constexpr int kMostThreads = 4096;
constexpr int kMostWorkers = 4096;  ///< Of a job.
constexpr int64_t kMostAttempts = 1'000'000;
constexpr int64_t kMostIdBytes = 64;
constexpr int64_t kMostPathBytes = 4096;  ///< PATH_MAX.
constexpr int64_t kLongestSilenceMs = 86'400'000;

Status CheckNumber(std::string_view field, int64_t value, int64_t low, int64_t high);
/// Bytes of a text.
Status CheckSize(std::string_view field, std::string_view text, int64_t low, int64_t high);
/// Entries of a list.
Status CheckCount(std::string_view field, int64_t count, int64_t most);
/// The folder of a job: absolute.
Status CheckFolder(std::string_view field, const std::string& folder);
/// The options of a job; `name` is that of the message in errors.
Status CheckOptions(std::string_view name, const engine::SessionOptions& options);
/// Of a launcher to its executor.
Status CheckStart(const ExecutorStart& start);

}  // namespace heddle::cluster
