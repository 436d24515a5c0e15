// SPDX-License-Identifier: Apache-2.0
#include "cluster/chaos/chaos_run.h"

#include <memory>
#include <optional>

#include "cluster/chaos/chaos_checkpoints.h"
#include "cluster/chaos/fault_injector.h"
#include "cluster/chaos/lossy_relay.h"
#include "cluster/executor/fresh_output.h"
#include "core/environment/random.h"
#include "core/hash.h"

namespace heddle::cluster {
namespace {

// So many attempts may end without a result or a checkpoint before faults become rarer.
constexpr int kPatientAttempts = 2;

class ChaosRun {
 public:
  ChaosRun(const Program& program, const engine::SessionOptions& options,
           const engine::RunSurroundings& surroundings, LocalProcesses processes, ChaosReport* report)
      : program_(program),
        options_(options),
        surroundings_(surroundings),
        processes_(std::move(processes)),
        report_(*report),
        checkpoints_(surroundings.directory, engine::RootsOfRun(), static_cast<size_t>(options.ranks),
                     report->chaos.checkpoint_ms) {
    // One for all attempts: they are to compute the same.
    if (options_.seed == -1) options_.seed = static_cast<int64_t>(SystemRandom().Next() >> 11);
    if (report_.chaos.drop > 0) processes_.shares_memory = false;
  }

  engine::RunOutcome Run() {
    double backoff = 1;  // times between faults are so many times as long
    int fruitless = 0;
    for (int number = 1;; ++number) {
      if (fruitless >= kPatientAttempts && !checkpoints_.has_moved_on()) {
        backoff *= 2;
        if (report_.rarer_from_attempt == 0) report_.rarer_from_attempt = number;
        report_.rarer_by = backoff;
      }
      report_.attempts = number;
      const int64_t faults = CountFaults();
      engine::RunOutcome outcome = Attempt(number, backoff);
      const bool is_disturbed = outcome.status.code() == StatusCode::kUnavailable && CountFaults() > faults;
      const bool is_cancelled =
          surroundings_.cancellation != nullptr && !surroundings_.cancellation->why().ok();
      if (!is_disturbed || is_cancelled) return outcome;
      if (!checkpoints_.has_moved_on()) ++fruitless;
      const Result<int64_t> restored = checkpoints_.Restore();
      if (!restored.ok()) {
        outcome.status = restored.status();
        return outcome;
      }
      report_.restored_files += *restored;
    }
  }

 private:
  int64_t CountFaults() const {
    return static_cast<int64_t>(report_.kills.size()) + report_.pauses + report_.lost_messages;
  }

  // From the last checkpoint, or the beginning.
  engine::RunOutcome Attempt(int number, double backoff) {
    const Chaos& chaos = report_.chaos;
    LocalAttempt attempt;
    attempt.number = number;
    Result<ExecutorCheckpoints> begin = checkpoints_.Begin(number);
    if (!begin.ok()) return {.status = begin.status(), .statistics = {}, .records = {}};
    attempt.checkpoints = *std::move(begin);
    if (!attempt.checkpoints.resume.empty()) ++report_.resumed;
    int64_t offset = attempt.checkpoints.printed;
    engine::RunSurroundings surroundings = surroundings_;
    surroundings.print = [&](std::string_view text) {
      const std::string_view fresh = FreshOutput(printed_, offset, text);
      offset += static_cast<int64_t>(text.size());
      report_.repeated_bytes += static_cast<int64_t>(text.size() - fresh.size());
      if (fresh.empty()) return;
      printed_ = offset;
      surroundings_.print(fresh);
    };
    std::unique_ptr<LossyRelay> relay;
    if (chaos.drop > 0) {
      Result<std::unique_ptr<LossyRelay>> started =
          LossyRelay::Start(chaos.drop / backoff, FoldHash(chaos.seed, static_cast<uint64_t>(number)));
      if (!started.ok()) return {.status = started.status(), .statistics = {}, .records = {}};
      relay = *std::move(started);
    }
    std::optional<FaultInjector> injector;
    attempt.started = [&](const std::vector<ExecutorProcess*>& processes) {
      injector.emplace(chaos, backoff, processes, number, &report_);
    };
    attempt.ends = [&] { injector.reset(); };
    if (relay != nullptr)
      attempt.route = [&](size_t, size_t, const std::string& endpoint) { return relay->Open(endpoint); };
    attempt.wrote = [&](size_t rank, const engine::WrittenCheckpoint& written) {
      checkpoints_.Wrote(rank, written);
    };
    attempt.may_change = [&](size_t rank, const std::string& path) { return checkpoints_.Save(rank, path); };
    LocalProcesses processes = processes_;
    processes.attempt = &attempt;
    engine::RunOutcome outcome = RunOnLocalProcesses(program_, options_, surroundings, processes);
    if (relay != nullptr) {
      report_.messages += relay->messages();
      report_.lost_messages += relay->lost();
    }
    return outcome;
  }

  const Program& program_;
  engine::SessionOptions options_;
  const engine::RunSurroundings& surroundings_;
  LocalProcesses processes_;
  ChaosReport& report_;
  ChaosCheckpoints checkpoints_;
  int64_t printed_ = 0;  // Bytes of standard output, of all attempts.
};

}  // namespace

engine::RunOutcome RunWithChaos(const Program& program, const engine::SessionOptions& options,
                                const engine::RunSurroundings& surroundings, LocalProcesses processes,
                                const Chaos& chaos, ChaosReport* report) {
  *report = ChaosReport();
  report->chaos = chaos;
  return ChaosRun(program, options, surroundings, std::move(processes), report).Run();
}

}  // namespace heddle::cluster
