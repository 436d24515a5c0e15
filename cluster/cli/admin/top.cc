// SPDX-License-Identifier: Apache-2.0
#include <fmt/ranges.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "cluster/cli/admin/node_json.h"
#include "cluster/cli/connection.h"
#include "cluster/cli/jobs/job_report.h"
#include "cluster/cli/report.h"
#include "cluster/cli/verb.h"
#include "cluster/master/job.h"
#include "cluster/process/interrupt.h"
#include "cluster/progress/progress_line.h"
#include "core/environment/clock.h"
#include "core/text/utf8.h"

namespace heddle::cluster::cli {
namespace {

using Kind = Option::Kind;

constexpr int kMostJobs = 200;
constexpr int64_t kLongestPauseMs = 3'600'000;

constexpr Option kOptions[] = {
    {"once", Kind::kFlag, "", "print it once (so it is where the output is no terminal)"},
    {"every", Kind::kValue, "TIME", "how often it is drawn anew (default 2s)"},
};

// What is drawn.
struct Snapshot {
  NodesReply nodes;
  ListReply jobs;
};

Result<Snapshot> Look(Client& client) {
  Snapshot snapshot;
  HEDDLE_RETURN_IF_ERROR(client.Nodes(&snapshot.nodes));
  ListRequest request;
  request.set_most(kMostJobs);
  for (const JobState state : {JobState::kQueued, JobState::kAdmitted, JobState::kStarting,
                               JobState::kRunning, JobState::kRecovering, JobState::kCancelling})
    request.add_states(std::string(Name(state)));
  HEDDLE_RETURN_IF_ERROR(client.List(request, &snapshot.jobs));
  return snapshot;
}

std::string Age(int64_t ms) {
  const int64_t seconds = std::max<int64_t>(ms, 0) / 1000;
  if (seconds < 120) return fmt::format("{} s", seconds);
  if (seconds < 7200) return fmt::format("{} min", seconds / 60);
  return fmt::format("{} h", seconds / 3600);
}

// "line 7  round 3 of 10  1.1 GB", or why it waits.
std::string Doing(const JobDescription& job) {
  const std::optional<Progress> progress = ParseProgress(job.progress());
  if (!progress || progress->state.line == 0) return FirstLine(job.reason());
  std::string text = fmt::format(
      "line {}", progress->state.main_line > 0 ? progress->state.main_line : progress->state.line);
  if (!progress->state.loops.empty()) {
    const ProgressState::Loop& loop = progress->state.loops.front();
    text += fmt::format("  round {}", loop.round + 1);
    if (loop.rounds > 0) text += fmt::format(" of {}", loop.rounds);
  }
  return text + fmt::format("  {:.1f} GB", static_cast<double>(progress->used_bytes) / 1e9);
}

std::string ToText(const Snapshot& snapshot, int64_t now_ms) {
  size_t alive = 0, busy = 0;
  int64_t threads = 0;
  for (const NodeDescription& node : snapshot.nodes.nodes()) {
    alive += node.state() == "ALIVE" ? 1 : 0;
    busy += node.jobs().empty() ? 0 : 1;
    threads += node.threads();
  }
  size_t running = 0;
  for (const JobDescription& job : snapshot.jobs.jobs()) running += job.workers_size() > 0 ? 1 : 0;
  std::string text = fmt::format("{} workers, {} alive, {} busy, {} threads; {}{} jobs, {} with workers\n\n",
                                 snapshot.nodes.nodes_size(), alive, busy, threads, snapshot.jobs.jobs_size(),
                                 snapshot.jobs.more() ? "+" : "", running);
  text += fmt::format("{:<19} {:<8} {:<7} {:<8} {:>9} {:>9}\n", "WORKER", "STATE", "JOB", "THREADS", "MEMORY",
                      "SILENT S");
  for (const NodeDescription& node : snapshot.nodes.nodes())
    text += fmt::format("{:<19} {:<8} {:<7} {:<8} {:>6.1f} GB {:>9.1f}\n", node.name(), node.state(),
                        node.jobs().empty() ? "-" : fmt::format("{}", fmt::join(node.jobs(), ",")),
                        fmt::format("{}/{}", node.reserved_threads(), node.threads()),
                        static_cast<double>(node.memory_bytes()) / 1e9,
                        static_cast<double>(node.silent_ms()) / 1e3);
  text += fmt::format("\n{:<7} {:<11} {:>8} {:>8} {:<23} {}\n", "JOB", "STATE", "AGE", "WORKERS", "SCRIPT",
                      "DOING");
  for (const JobDescription& job : snapshot.jobs.jobs())
    text += fmt::format("{:<7} {:<11} {:>8} {:>8} {:<23} {}\n", job.job(), job.state(),
                        Age(now_ms - job.submitted_ms()), job.workers_size(), FirstLine(job.script()),
                        Doing(job));
  return text;
}

std::string ToJson(const Snapshot& snapshot) {
  nlohmann::ordered_json json;
  json["nodes"] = nlohmann::ordered_json::array();
  for (const NodeDescription& node : snapshot.nodes.nodes()) json["nodes"].push_back(JsonOf(node));
  json["jobs"] = nlohmann::ordered_json::array();
  for (const JobDescription& job : snapshot.jobs.jobs())
    json["jobs"].push_back(
        nlohmann::ordered_json::parse(cli::ToJson(job), nullptr, /*allow_exceptions=*/false));
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Lines that fit a terminal, from its top.
std::string OnScreen(const std::string& text) {
  std::string screen = "\x1b[H\x1b[2J";
  const auto columns = static_cast<size_t>(std::max(StandardError().columns(), 20));
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    screen += std::string(CutAtCharacter(std::string_view(text).substr(begin, end - begin), columns)) + "\n";
    begin = end + 1;
  }
  return screen;
}

int Run(const Arguments& arguments) {
  const Result<int64_t> every_ms = arguments.Milliseconds("every", 2'000, kLongestPauseMs);
  if (!every_ms.ok()) return ReportOutcome(arguments, every_ms.status());
  const Result<std::unique_ptr<Client>> client = ConnectToMaster(arguments, kAdminToken);
  if (!client.ok()) return ReportOutcome(arguments, client.status());
  const char* const terminal = std::getenv("TERM");
  const bool is_live = !arguments.Has("once") && !arguments.Has("json") && isatty(STDOUT_FILENO) == 1 &&
                       terminal != nullptr && std::string_view(terminal) != "dumb";
  engine::Cancellation cancellation;
  InterruptGuard guard(cancellation);
  std::mutex mutex;
  std::condition_variable changed;
  bool is_over = false;
  cancellation.Listen([&](const Status&) {
    const std::lock_guard lock(mutex);
    is_over = true;
    changed.notify_all();
  });
  int code = 0;
  for (bool is_first = true;; is_first = false) {
    const Result<Snapshot> snapshot = Look(**client);
    if (!snapshot.ok()) {
      code = ReportOutcome(arguments, snapshot.status());
      break;
    }
    if (is_first) WarnOfVersion(**client);
    const std::string text = arguments.Has("json")
                                 ? ToJson(*snapshot) + "\n"
                                 : EscapeForTerminal(ToText(*snapshot, SystemClock().WallMs()));
    if (!PrintOutput(is_live ? OnScreen(text) : text) || !is_live) break;
    std::unique_lock lock(mutex);
    if (changed.wait_for(lock, std::chrono::milliseconds(std::max<int64_t>(*every_ms, 100)),
                         [&] { return is_over; }))
      break;
  }
  cancellation.Listen(nullptr);
  return code;
}

}  // namespace

const Verb kAdminTopVerb = {"admin top",
                            "show workers and the jobs that run or wait, as they change",
                            "admin top [OPTIONS]",
                            JoinOptions({kOptions, MasterVerbOptions()}),
                            "heddle admin top --every 5s",
                            Run};

}  // namespace heddle::cluster::cli
