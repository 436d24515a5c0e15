// SPDX-License-Identifier: Apache-2.0
#include "cluster/executor/start_limits.h"

#include <algorithm>
#include <charconv>

#include "compiler/optimize/pass.h"
#include "core/text/utf8.h"
#include "ops/base/cpu.h"
#include "scheduler/devices/device_options.h"

namespace heddle::cluster {
namespace {

constexpr int64_t kMostCallDepth = 1'000'000;
constexpr int64_t kMostRecordedEvents = 1 << 20;
constexpr int64_t kLeastSilenceMs = 10;  // ten signs of life in that time

Status CheckFusion(std::string_view name, std::string_view fusion) {
  for (const std::string_view mode : {"off", "all", "no-redundancy", "cost"})
    if (fusion == mode) return OkStatus();
  constexpr std::string_view kSeeded = "random:";
  uint64_t seed = 0;
  if (fusion.starts_with(kSeeded)) {
    const std::string_view digits = fusion.substr(kSeeded.size());
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), seed);
    if (error == std::errc() && end == digits.data() + digits.size()) return OkStatus();
  }
  return InvalidArgument("{}.fusion is '{}'; it is off, all, no-redundancy, cost or random:SEED", name,
                         CutAtCharacter(fusion, kMostIdBytes));
}

Status CheckCpu(std::string_view name, const std::string& cpu) {
  if (cpu.empty()) return OkStatus();
  HEDDLE_RETURN_IF_ERROR(CheckSize(fmt::format("{}.cpu", name), cpu, 0, kMostPathBytes));
  for (int i = 0; i <= std::count(cpu.begin(), cpu.end(), ','); ++i) {
    const std::string_view one = ops::CpuOfRank(cpu, i);
    if (one != "auto" && one != "avx2" && one != "avx512")
      return InvalidArgument("{}.cpu is '{}'; it is auto, avx2 or avx512", name,
                             CutAtCharacter(one, kMostIdBytes));
  }
  return OkStatus();
}

Status CheckDevices(std::string_view name, const std::string& devices) {
  if (devices == "cpu" || devices == "auto" || scheduler::ParseDevices(devices)) return OkStatus();
  return InvalidArgument("{}.devices is '{}'; it is cpu, auto, or opencl:0 to opencl:127", name,
                         CutAtCharacter(devices, kMostIdBytes));
}

Status CheckPasses(std::string_view name, const std::vector<std::string>& passes) {
  const std::vector<std::string> known = compiler::NamesToDisable();
  HEDDLE_RETURN_IF_ERROR(CheckCount(fmt::format("{}.disabled_passes", name),
                                    static_cast<int64_t>(passes.size()),
                                    static_cast<int64_t>(10 * known.size())));
  for (const std::string& pass : passes)
    if (std::find(known.begin(), known.end(), pass) == known.end())
      return InvalidArgument("{}.disabled_passes: '{}' is no pass or rule", name,
                             CutAtCharacter(pass, kMostIdBytes));
  return OkStatus();
}

}  // namespace

Status CheckNumber(std::string_view field, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return OkStatus();
  return InvalidArgument("{} is {}; it goes from {} to {}", field, value, low, high);
}

Status CheckSize(std::string_view field, std::string_view text, int64_t low, int64_t high) {
  const auto size = static_cast<int64_t>(text.size());
  if (size >= low && size <= high) return OkStatus();
  return InvalidArgument("{} has {} bytes; it has from {} to {}", field, size, low, high);
}

Status CheckCount(std::string_view field, int64_t count, int64_t most) {
  if (count <= most) return OkStatus();
  return InvalidArgument("{} has {} entries; it has {} at most", field, count, most);
}

Status CheckFolder(std::string_view field, const std::string& folder) {
  HEDDLE_RETURN_IF_ERROR(CheckSize(field, folder, 1, kMostPathBytes));
  if (!folder.starts_with("/"))
    return InvalidArgument("{}: the folder '{}' of a job is not absolute", field, folder);
  if (folder.find('\0') != std::string::npos) return InvalidArgument("{} has a zero byte", field);
  return OkStatus();
}

Status CheckOptions(std::string_view name, const engine::SessionOptions& options) {
  const auto field = [&](std::string_view one) { return fmt::format("{}.{}", name, one); };
  HEDDLE_RETURN_IF_ERROR(CheckNumber(field("threads"), options.threads, 0, kMostThreads));
  HEDDLE_RETURN_IF_ERROR(
      CheckNumber(field("min_distributed_bytes"), options.min_distributed_bytes, 0, INT64_MAX));
  HEDDLE_RETURN_IF_ERROR(CheckNumber(field("memory_bytes"), options.memory_bytes, 0, INT64_MAX));
  HEDDLE_RETURN_IF_ERROR(CheckNumber(field("available_bytes"), options.available_bytes, 0, INT64_MAX));
  HEDDLE_RETURN_IF_ERROR(CheckNumber(field("panel_bytes"), options.panel_bytes, 0, INT64_MAX));
  HEDDLE_RETURN_IF_ERROR(CheckSize(field("spill_folder"), options.spill_folder, 0, kMostPathBytes));
  HEDDLE_RETURN_IF_ERROR(
      CheckNumber(field("recorded_events"), options.recorded_events, 0, kMostRecordedEvents));
  HEDDLE_RETURN_IF_ERROR(CheckNumber(field("seed"), options.seed, -1, INT64_MAX));
  HEDDLE_RETURN_IF_ERROR(CheckNumber(field("max_call_depth"), options.max_call_depth, 1, kMostCallDepth));
  HEDDLE_RETURN_IF_ERROR(CheckPasses(name, options.disabled_passes));
  HEDDLE_RETURN_IF_ERROR(CheckFusion(name, options.fusion));
  HEDDLE_RETURN_IF_ERROR(CheckDevices(name, options.devices));
  return CheckCpu(name, options.cpu);
}

Status CheckStart(const ExecutorStart& start) {
  HEDDLE_RETURN_IF_ERROR(CheckNumber("ExecutorStart.attempt", start.attempt, 0, kMostAttempts));
  HEDDLE_RETURN_IF_ERROR(
      CheckNumber("ExecutorStart.silence_ms", start.silence_ms, kLeastSilenceMs, kLongestSilenceMs));
  // A script of `sim` may run where the folder was deleted, as long as it uses no relative paths.
  if (start.epoch != 0 || !start.directory.empty())
    HEDDLE_RETURN_IF_ERROR(CheckFolder("ExecutorStart.directory", start.directory));
  HEDDLE_RETURN_IF_ERROR(CheckNumber("ExecutorStart.options.ranks", start.options.ranks, 1, kMostWorkers));
  HEDDLE_RETURN_IF_ERROR(
      CheckNumber("ExecutorStart.options.rank", start.options.rank, 0, start.options.ranks - 1));
  HEDDLE_RETURN_IF_ERROR(CheckNumber("ExecutorStart.checkpoints.interval_ms", start.checkpoints.interval_ms,
                                     ExecutorCheckpoints::kNever, INT64_MAX / 1'000'000));
  HEDDLE_RETURN_IF_ERROR(CheckNumber("ExecutorStart.checkpoints.resume_ranks", start.checkpoints.resume_ranks,
                                     start.checkpoints.resume.empty() ? 0 : 1, kMostWorkers));
  HEDDLE_RETURN_IF_ERROR(
      CheckNumber("ExecutorStart.checkpoints.printed", start.checkpoints.printed, 0, INT64_MAX));
  HEDDLE_RETURN_IF_ERROR(CheckOptions("ExecutorStart.options", start.options));
  return CheckNumber("ExecutorStart.options.threads", start.options.threads, 1, kMostThreads);
}

}  // namespace heddle::cluster
