// SPDX-License-Identifier: Apache-2.0
#include "cluster/chaos/fault_injector.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "core/environment/clock.h"
#include "core/hash.h"

namespace heddle::cluster {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr double kNsPerMs = 1e6;

uint64_t SeedOf(const Chaos& chaos, int attempt, uint64_t kind) {
  return FoldHash(FoldHash(chaos.seed, static_cast<uint64_t>(attempt)), kind);
}

int64_t MomentAfter(int64_t now_ns, RandomSource& random, double mean_ms) {
  if (mean_ms <= 0) return kNever;
  return now_ns + static_cast<int64_t>(WaitOfMean(random, mean_ms) * kNsPerMs);
}

}  // namespace

double UniformShare(RandomSource& random) {
  constexpr double kPart = 0x1p-53;
  return (static_cast<double>(random.Next() >> 11) + 1) * kPart;
}

double WaitOfMean(RandomSource& random, double mean) { return -std::log(UniformShare(random)) * mean; }

FaultInjector::FaultInjector(const Chaos& chaos, double rarer_by, std::vector<ExecutorProcess*> processes,
                             int attempt, ChaosReport* report)
    : chaos_(chaos),
      rarer_by_(rarer_by),
      processes_(std::move(processes)),
      attempt_(attempt),
      report_(report),
      kill_random_(SeedOf(chaos, attempt, 1)),
      pause_random_(SeedOf(chaos, attempt, 2)),
      begin_ns_(SystemClock().MonotonicNs()),
      kill_ns_(MomentAfter(begin_ns_, kill_random_, static_cast<double>(chaos.kill_ms) * rarer_by)),
      pause_ns_(MomentAfter(begin_ns_, pause_random_, static_cast<double>(chaos.pause_ms) * rarer_by)),
      thread_([this] { Run(); }) {}

FaultInjector::~FaultInjector() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

int64_t FaultInjector::NextNs() const {
  int64_t next = std::min(kill_ns_, pause_ns_);
  for (const Stopped& stopped : stopped_) next = std::min(next, stopped.until_ns);
  return next;
}

void FaultInjector::Run() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    const int64_t now_ns = SystemClock().MonotonicNs();
    Resume(now_ns, /*all=*/false);
    if (now_ns >= kill_ns_) Kill(now_ns);
    if (now_ns >= pause_ns_) Pause(now_ns);
    const int64_t next_ns = NextNs();
    if (next_ns == kNever)
      changed_.wait(lock);
    else
      changed_.wait_for(lock, std::chrono::nanoseconds(std::max<int64_t>(next_ns - now_ns, 0)));
  }
  Resume(SystemClock().MonotonicNs(), /*all=*/true);
}

void FaultInjector::Resume(int64_t now_ns, bool all) {
  std::erase_if(stopped_, [&](const Stopped& stopped) {
    if (!all && now_ns < stopped.until_ns) return false;
    processes_[stopped.rank]->Signal(SIGCONT);
    report_->paused_ms += static_cast<int64_t>(static_cast<double>(now_ns - stopped.since_ns) / kNsPerMs);
    return true;
  });
}

// One in an attempt: the others end with the one that is gone.
void FaultInjector::Kill(int64_t now_ns) {
  const uint64_t rank = kill_random_.Below(processes_.size());
  if (processes_[rank]->Signal(SIGKILL))
    report_->kills.push_back({attempt_, static_cast<int>(rank),
                              static_cast<int64_t>(static_cast<double>(now_ns - begin_ns_) / kNsPerMs)});
  kill_ns_ = kNever;
}

void FaultInjector::Pause(int64_t now_ns) {
  const uint64_t rank = pause_random_.Below(processes_.size());
  const double longest_ns = static_cast<double>(chaos_.pause_ms) * kNsPerMs;
  const auto length_ns = static_cast<int64_t>(UniformShare(pause_random_) * longest_ns);
  pause_ns_ = MomentAfter(now_ns, pause_random_, static_cast<double>(chaos_.pause_ms) * rarer_by_);
  const bool is_stopped =
      std::ranges::any_of(stopped_, [&](const Stopped& stopped) { return stopped.rank == rank; });
  if (is_stopped || !processes_[rank]->Signal(SIGSTOP)) return;
  ++report_->pauses;
  stopped_.push_back({rank, now_ns + length_ns, now_ns});
}

}  // namespace heddle::cluster
