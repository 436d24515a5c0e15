// SPDX-License-Identifier: Apache-2.0
// Many jobs while executors, workers and the master are killed and stopped: every job ends with the bytes of
// a quiet run, and nothing is left over. HEDDLE_CHAOS_SECONDS says for how long (default 15), HEDDLE_SEED
// which chaos; HEDDLE_KILLS and HEDDLE_STOPS say how many blows times are measured over, HEDDLE_CHECKPOINT_MS
// how far apart checkpoints are meanwhile.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <thread>

#include "tests/cluster/cluster_of_processes.h"

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;
using testing_support::ClusterOfProcesses;
using testing_support::Finished;
using testing_support::ReadText;
using testing_support::WriteText;

// $k tells jobs of one script apart, $n says how long they take.
constexpr const char* kScripts[] = {
    // gradient descent on rows that are split
    "X = rand(rows=3000, cols=10, seed=$k)\nw = matrix(0, rows=10, cols=1)\n"
    "for (i in 1:(30 * $n)) {\n  w = w - 1e-6 * (t(X) %*% (X %*% w - rowSums(X)))\n"
    "  if (i %% 10 == 0) print(i + \" \" + sum(w))\n}\nwrite(w, \"w\" + $k + \".csv\", format=\"csv\")\n",
    // a matrix that grows and one that is changed in place
    "A = matrix(0, rows=1, cols=4)\nB = rand(rows=500, cols=4, seed=$k)\n"
    "for (i in 1:(40 * $n)) {\n  A = rbind(A, colSums(B) / 1000)\n  B[i %% 500 + 1, 2] = i + $k\n}\n"
    "print(sum(A) + \" \" + nrow(A))\nprint(sum(B))\n",
    // unseeded numbers, functions that call functions
    "f = function(matrix[double] M, integer d) return (double s) {\n"
    "  s = sum(M)\n  if (d > 0) s = s + f(M + rand(rows=nrow(M), cols=ncol(M)), d - 1)\n}\n"
    "s = $k\nfor (i in 1:(15 * $n)) { s = s + f(matrix(i, rows=200, cols=5), 3) }\nprint(s)\n",
    // lists, text, logical, a loop of which nobody knows the rounds
    "L = list()\nx = $k * 1000.0\nwhile (x > 1) {\n  L = append(L, matrix(x, rows=70, cols=3))\n"
    "  x = x / (1 + 0.2 / $n)\n  print(\"x \" + x)\n}\nt = 0\n"
    "for (i in 1:length(L)) { t = t + sum(as.matrix(L[i])) }\nprint(t + \" \" + length(L))\n",
    // a parfor in a loop, CSR
    "S = rand(rows=400, cols=60, sparsity=0.05, seed=$k)\n"
    "for (i in 1:(6 * $n)) {\n  R = matrix(0, rows=8, cols=1)\n"
    "  parfor (j in 1:8) { R[j, 1] = sum(S * j) + i }\n  S = S * 1.01\n  print(i + \" \" + sum(R))\n}\n",
    // files that are read again and written in rounds
    "write(rand(rows=300, cols=3, seed=$k), \"in\" + $k + \".csv\", format=\"csv\")\n"
    "for (i in 1:(5 * $n)) {\n  X = read(\"in\" + $k + \".csv\", format=\"csv\")\n  Y = X * i\n"
    "  write(Y, \"out\" + $k + \".bin\", format=\"binary\")\n  print(i + \" \" + sum(Y))\n}\n",
};
constexpr size_t kKinds = std::size(kScripts);

int64_t Environment(const char* name, int64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoll(text);
}

class JobChaosTest : public testing::Test {
 protected:
  static constexpr size_t kWorkers = 3;
  struct Job {
    std::string id;
    size_t kind = 0;
    std::string k;
  };

  JobChaosTest() : cluster_(2'000, "", {"--checkpoints", place_.path()}) {
    for (size_t kind = 0; kind < kKinds; ++kind)
      WriteText(cluster_.folder() + "/" + std::to_string(kind) + ".dml", kScripts[kind]);
    for (size_t i = 0; i < kWorkers; ++i) cluster_.StartWorker(NameOf(i));
  }
  static std::string NameOf(size_t worker) { return "worker" + std::to_string(worker); }

  static int64_t NowMs() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  nlohmann::json StatusOf(const std::string& job) {
    return nlohmann::json::parse(cluster_.Run({"job", "status", "--json", job}).output, nullptr,
                                 /*allow_exceptions=*/false);
  }
  // The first transition of a job to `state` at or after a moment; -1: none.
  static int64_t NextMs(const nlohmann::json& status, const std::string& state, int64_t since_ms) {
    for (const nlohmann::json& transition : status["transitions"])
      if (transition["state"] == state && transition["time_ms"].get<int64_t>() >= since_ms)
        return transition["time_ms"].get<int64_t>();
    return -1;
  }
  std::vector<std::string> WordsOf(const Job& job) const {
    return {std::to_string(job.kind) + ".dml", "-nvargs", "k=" + job.k, "n=" + std::to_string(scale_)};
  }
  std::string Quiet(const Job& job) {
    std::vector<std::string> words = {"run", "--seed", job.k};
    for (const std::string& word : WordsOf(job)) words.push_back(word);
    const Finished quiet = cluster_.Run(words);
    EXPECT_EQ(quiet.code, 0) << quiet.errors;
    return quiet.output;
  }
  // What the job has printed and written is what a quiet run prints and writes.
  void ExpectQuiet(const Job& job) {
    const std::string file =
        cluster_.folder() + (job.kind == 0 ? "/w" + job.k + ".csv" : "/out" + job.k + ".bin");
    const bool has_file = job.kind == 0 || job.kind == 5;
    const std::string written = has_file ? ReadText(file) : "";
    EXPECT_EQ(cluster_.Run({"job", "logs", job.id}).output, Quiet(job));
    EXPECT_EQ(written, has_file ? ReadText(file) : "");
  }
  bool Submit(Job* job) {
    std::vector<std::string> words = {"job",
                                      "submit",
                                      "--detach",
                                      "--seed",
                                      job->k,
                                      "--workers",
                                      std::to_string(workers_ > 0 ? workers_ : 1 + random_() % kWorkers),
                                      "--checkpoint",
                                      std::to_string(checkpoint_ms_) + "ms",
                                      "--min-distributed-bytes",
                                      "0",
                                      "--request-id",
                                      "r" + job->k};
    for (const std::string& word : WordsOf(*job)) words.push_back(word);
    // The master may not be there for a moment.
    const auto end = Clock::now() + std::chrono::seconds(60 * testing_support::kPatience);
    for (;;) {
      const Finished submitted = cluster_.Run(words);
      if (submitted.code == 0) {
        job->id = submitted.output.substr(0, submitted.output.find('\n'));
        return true;
      }
      if (Clock::now() < end) continue;
      ADD_FAILURE() << "no job can be submitted: " << submitted.errors;
      return false;
    }
  }

  // One blow; what it was.
  std::string Strike() {
    const size_t worker = random_() % kWorkers;
    const std::vector<pid_t> executors = ClusterOfProcesses::ChildrenOf(cluster_.worker(worker).pid());
    const uint64_t what = random_() % 100;
    if (what < 55) {
      if (executors.empty()) return "";
      kill(executors[random_() % executors.size()], SIGKILL);
      return "executor killed";
    }
    if (what < 75) {
      cluster_.worker(worker).Signal(SIGKILL);
      cluster_.RestartWorker(worker, NameOf(worker));
      return "worker killed";
    }
    if (what < 82) {
      cluster_.master().Signal(SIGKILL);
      cluster_.master().Wait();
      cluster_.StartMaster();
      return "master killed";
    }
    const pid_t stopped = executors.empty() || what < 90 ? cluster_.worker(worker).pid()
                                                         : executors[random_() % executors.size()];
    kill(stopped, SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(random_() % 4'000));
    kill(stopped, SIGCONT);
    return "process stopped";
  }

  std::mt19937_64 random_{static_cast<uint64_t>(Environment("HEDDLE_SEED", 1))};
  int64_t scale_ = 4;
  size_t workers_ = 0;  // Of a job; 0: drawn.
  int64_t checkpoint_ms_ = 150;
  const testing_support::TemporaryFolder place_;
  ClusterOfProcesses cluster_;
};

TEST_F(JobChaosTest, EveryJobEndsWithTheBytesOfAQuietRun) {
  const auto end = Clock::now() + std::chrono::seconds(Environment("HEDDLE_CHAOS_SECONDS", 15));
  std::vector<Job> jobs;
  std::map<std::string, int> blows;
  // How many blows fall in that time is a matter of the machine.
  constexpr int kFewestBlows = 11;
  const auto latest = end + std::chrono::seconds(120 * testing_support::kPatience);
  int struck = 0;
  while (Clock::now() < end || (struck < kFewestBlows && Clock::now() < latest)) {
    if (jobs.size() < 4 || random_() % 3 == 0) {
      Job job{.id = "", .kind = jobs.size() % kKinds, .k = std::to_string(jobs.size() + 1)};
      ASSERT_TRUE(Submit(&job));
      jobs.push_back(job);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(random_() % 400));
    const std::string what = Strike();
    if (what.empty()) continue;
    ++blows[what];
    ++struck;
  }
  for (const auto& [what, times] : blows) std::printf("%d times: %s\n", times, what.c_str());
  EXPECT_GE(struck, kFewestBlows);
  for (const Job& job : jobs) {
    SCOPED_TRACE(job.id + ": " + std::to_string(job.kind));
    const Finished outcome = cluster_.Run({"job", "wait", job.id});
    ASSERT_EQ(outcome.code, 0) << outcome.errors << cluster_.Run({"job", "status", job.id}).output;
    ExpectQuiet(job);
  }
  std::printf("%zu jobs\n", jobs.size());
  // They go behind the end of their jobs.
  for (int look = 0; look < 1200 && !std::filesystem::is_empty(place_.path()); ++look)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_TRUE(std::filesystem::is_empty(place_.path()));
  cluster_.EndAndExpectNothingLeft();
}

// What one blow does to a job: how long it takes until that is seen and until the job runs again, and which
// work is done once more. One job at a time, so that nothing waits for another.
class JobBlowsTest : public JobChaosTest {
 protected:
  // Where a job is struck: a worker and an executor of it.
  struct Place {
    size_t worker;
    pid_t executor;
  };
  // Strikes, and returns when what was struck is there again.
  using Blow = std::function<void(const Job& job, const Place& place)>;

  JobBlowsTest() {
    workers_ = 2;
    checkpoint_ms_ = Environment("HEDDLE_CHECKPOINT_MS", 150);
  }

  // Until a job that was struck at `since_ms` is known to recover, or a minute.
  void AwaitLoss(const Job& job, int64_t since_ms) {
    const auto end = Clock::now() + std::chrono::seconds(60 * testing_support::kPatience);
    while (NextMs(StatusOf(job.id), "RECOVERING", since_ms) < 0 && Clock::now() < end) {
    }
  }

  // Until the job runs and has a checkpoint that is later than `since_ms`. False when it has ended. Of the
  // checkpoint from which an attempt after `attempt` goes on: its time (-1: none was seen).
  bool AwaitCheckpoint(const std::string& job, int64_t attempt, int64_t since_ms, int64_t* resumed_from_ms) {
    const auto end = Clock::now() + std::chrono::seconds(60 * testing_support::kPatience);
    while (Clock::now() < end) {
      const nlohmann::json status = StatusOf(job);
      if (status.is_discarded() || status.contains("finished_ms")) return false;
      const auto checkpoint_ms = status["checkpoint_ms"].get<int64_t>();
      if (*resumed_from_ms < 0 && checkpoint_ms > 0 && checkpoint_ms <= since_ms &&
          status["attempt"].get<int64_t>() > attempt)
        *resumed_from_ms = checkpoint_ms;
      if (status["state"] == "RUNNING" && checkpoint_ms > since_ms) return true;
    }
    return false;
  }

  std::optional<Place> PlaceOf(const Job&) {
    size_t worker = random_() % kWorkers;
    for (size_t looks = 0; looks < kWorkers; ++looks, worker = (worker + 1) % kWorkers)
      if (const auto executors = ClusterOfProcesses::ChildrenOf(cluster_.worker(worker).pid());
          !executors.empty())
        return Place{worker, executors[0]};
    return std::nullopt;  // It has just ended, or begins anew.
  }

  static int64_t Tell(const char* what, std::vector<int64_t> times) {
    if (times.empty()) return 0;
    std::sort(times.begin(), times.end());
    const int64_t p99 = times[std::min(times.size() - 1, times.size() * 99 / 100)];
    std::printf("%s: %zu, median %lld ms, p99 %lld ms, longest %lld ms\n", what, times.size(),
                static_cast<long long>(times[times.size() / 2]), static_cast<long long>(p99),
                static_cast<long long>(times.back()));
    return p99;
  }

  // Strikes jobs of all kinds, one after the other, until there were `wanted` blows, of which the job was
  // seen to run again where `must_resume` says so.
  void Strike(int64_t wanted, bool must_resume, int64_t most_seen_ms, int64_t most_resumed_ms,
              const Blow& blow) {
    constexpr size_t kBlowsOfAJob = 10;
    // So that each kind takes seconds.
    constexpr int64_t kScales[kKinds] = {1'000, 80, 400, 100, 500, 180};
    std::vector<int64_t> seen_ms, resumed_ms, repeated_ms;
    int64_t blows = 0;
    int jobs = 0;
    for (int number = 1; (must_resume ? static_cast<int64_t>(resumed_ms.size()) : blows) < wanted; ++number) {
      Job job{.id = "", .kind = static_cast<size_t>(number - 1) % kKinds, .k = std::to_string(number)};
      scale_ = kScales[job.kind];
      ASSERT_TRUE(Submit(&job));
      SCOPED_TRACE(job.id + ": " + std::to_string(job.kind));
      ++jobs;
      std::vector<int64_t> struck;
      int64_t attempt = 0, since_ms = 0, resumed_from_ms = -1, missing = wanted - blows;
      if (must_resume) missing = wanted - static_cast<int64_t>(resumed_ms.size());
      while (AwaitCheckpoint(job.id, attempt, since_ms, &resumed_from_ms)) {
        if (resumed_from_ms > 0) repeated_ms.push_back(struck.back() - resumed_from_ms);
        resumed_from_ms = -1;
        if (struck.size() >= kBlowsOfAJob || static_cast<int64_t>(struck.size()) >= missing) break;
        attempt = StatusOf(job.id)["attempt"].get<int64_t>();
        const std::optional<Place> place = PlaceOf(job);
        if (!place) continue;
        since_ms = NowMs();
        struck.push_back(since_ms);
        blow(job, *place);
        ++blows;
      }
      const Finished outcome = cluster_.Run({"job", "wait", job.id});
      ASSERT_EQ(outcome.code, 0) << outcome.errors << cluster_.Run({"job", "status", job.id}).output;
      ExpectQuiet(job);
      const nlohmann::json status = StatusOf(job.id);
      for (size_t i = 0; i < struck.size(); ++i) {
        const int64_t seen = NextMs(status, "RECOVERING", struck[i]);
        const int64_t resumed = seen < 0 ? -1 : NextMs(status, "RUNNING", seen);
        // The job was over, or nothing had to be done until the next blow.
        if (resumed < 0 || (i + 1 < struck.size() && seen >= struck[i + 1])) continue;
        seen_ms.push_back(seen - struck[i]);
        resumed_ms.push_back(resumed - struck[i]);
      }
    }
    std::printf("%lld blows, %d jobs, checkpoints every %lld ms\n", static_cast<long long>(blows), jobs,
                static_cast<long long>(checkpoint_ms_));
    EXPECT_LE(Tell("seen", seen_ms), most_seen_ms * testing_support::kPatience);
    EXPECT_LE(Tell("runs again", resumed_ms), most_resumed_ms * testing_support::kPatience);
    Tell("done once more", repeated_ms);
    cluster_.EndAndExpectNothingLeft();
  }
};

// Of executors, and of workers that do not come back before the job runs again.
TEST_F(JobBlowsTest, AJobRunsAgainWithinSecondsOfAKill) {
  Strike(Environment("HEDDLE_KILLS", 6), /*must_resume=*/true, 3'000, 10'000,
         [this](const Job& job, const Place& place) {
           if (random_() % 10 >= 3) {
             kill(place.executor, SIGKILL);
             return;
           }
           const int64_t since_ms = NowMs();
           cluster_.worker(place.worker).Signal(SIGKILL);
           AwaitLoss(job, since_ms);
           cluster_.RestartWorker(place.worker, NameOf(place.worker));
         });
}

TEST_F(JobBlowsTest, AJobGoesOnWithinSecondsOfAKillOfTheMaster) {
  Strike(Environment("HEDDLE_KILLS", 2), /*must_resume=*/true, 3'000, 15'000,
         [this](const Job&, const Place&) {
           cluster_.master().Signal(SIGKILL);
           cluster_.master().Wait();
           cluster_.StartMaster();
         });
}

// For a second up to HEDDLE_STOP_SECONDS: an executor, a worker or the master. An executor that is silent for
// 3 s counts as stuck.
TEST_F(JobBlowsTest, AJobGoesOnWhateverIsStoppedForAWhile) {
  const int64_t most_ms = 1'000 * Environment("HEDDLE_STOP_SECONDS", 4);
  Strike(Environment("HEDDLE_STOPS", 2), /*must_resume=*/false, 5'000, 15'000,
         [&](const Job&, const Place& place) {
           const pid_t stopped[] = {place.executor, cluster_.worker(place.worker).pid(),
                                    cluster_.master().pid()};
           const pid_t process = stopped[random_() % std::size(stopped)];
           kill(process, SIGSTOP);
           std::this_thread::sleep_for(std::chrono::milliseconds(1'000 + random_() % (most_ms - 999)));
           kill(process, SIGCONT);
         });
}

}  // namespace
}  // namespace heddle
