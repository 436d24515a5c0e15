// SPDX-License-Identifier: Apache-2.0
// Jobs over a bad network between master and workers: they end with the bytes of a quiet run or with a clear
// failure, no attempt that was given up writes, and nothing is left over. Most cuts last for longer than a
// lease; with HEDDLE_NETWORK=full for 1, 30 and 120 s with the usual lease.
#include <gtest/gtest.h>
#include <sys/inotify.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <regex>
#include <thread>

#include "core/environment/descriptor.h"
#include "tests/cluster/cluster_of_processes.h"
#include "tests/support/fault_proxy.h"

namespace heddle::testing_support {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using Way = FaultProxy::Way;

bool IsFull() {
  const char* const size = std::getenv("HEDDLE_NETWORK");
  return size != nullptr && std::string(size) == "full";
}
int LeaseMs() { return IsFull() ? 10'000 : 1'500; }
std::vector<milliseconds> Durations() {
  if (IsFull()) return {seconds(1), seconds(30), seconds(120)};
  return {milliseconds(2 * LeaseMs() * kLeasePatience)};
}

// Exchanges rows in rounds, prints, and replaces a file that it writes in some of them. What it reads of the
// clock changes no value.
constexpr const char* kScript =
    "X = rand(rows=2000, cols=10, seed=7)\nw = matrix(0, rows=10, cols=1)\n"
    "for (i in 1:30) {\n"
    "  w = w - 0.0001 * (t(X) %*% (X %*% w - rowSums(X)))\n"
    "  t = time()\n  while (time() - t < 5e7) { t = t }\n"
    "  if (i %% 3 == 0) print(i + \" \" + sum(w))\n"
    "  if (i %% 10 == 0) write(w, \"w.csv\", format=\"csv\")\n}\n";

// How often a file of that name has appeared in a folder.
class Appearances {
 public:
  Appearances(const std::string& folder, std::string name) : name_(std::move(name)) {
    inotify_add_watch(fd_.get(), folder.c_str(), IN_MOVED_TO | IN_CREATE);
  }
  int Count() {
    alignas(inotify_event) char events[1 << 14];
    for (ssize_t got = 0; (got = read(fd_.get(), events, sizeof(events))) > 0;)
      for (const char* at = events; at < events + got;) {
        const auto* const event = reinterpret_cast<const inotify_event*>(at);
        if (event->len > 0 && name_ == event->name) ++count_;
        at += sizeof(*event) + event->len;
      }
    return count_;
  }

 private:
  const std::string name_;
  const Descriptor fd_{inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
  int count_ = 0;
};

class NetworkTest : public testing::Test {
 protected:
  NetworkTest() : cluster_(LeaseMs(), "127.0.0.1:0", {"--checkpoints", place_.path()}) {
    WriteText(cluster_.folder() + "/script.dml", kScript);
    const Finished quiet = cluster_.Run({"run", "script.dml"});
    EXPECT_EQ(quiet.code, 0) << quiet.errors;
    expected_ = quiet.output;
    expected_file_ = ReadText(file());
    std::filesystem::remove(file());
    for (const char* name : {"alpha", "beta"}) {
      proxies_.push_back(std::make_unique<FaultProxy>(cluster_.address(), 11 + proxies_.size()));
      cluster_.StartWorker(name, proxies_.back()->endpoint());
    }
  }
  std::string file() const { return cluster_.folder() + "/w.csv"; }
  void ForAll(const std::function<void(FaultProxy&)>& change) {
    for (const auto& proxy : proxies_) change(*proxy);
  }

  std::string Submit(std::vector<std::string> options = {}) {
    std::vector<std::string> words = {"job", "submit",       "--detach", "--workers",
                                      "2",   "--checkpoint", "300ms",    "--min-distributed-bytes",
                                      "0"};
    words.insert(words.end(), options.begin(), options.end());
    words.push_back("script.dml");
    const Finished submitted = cluster_.Run(words);
    EXPECT_EQ(submitted.code, 0) << submitted.errors;
    return submitted.output.substr(0, submitted.output.find('\n'));
  }
  std::string Status(const std::string& job) { return cluster_.Run({"job", "status", "--json", job}).output; }
  int AttemptOf(const std::string& job) {
    std::smatch match;
    const std::string status = Status(job);
    return std::regex_search(status, match, std::regex("\"attempt\":([0-9]+)")) ? std::stoi(match[1]) : 0;
  }
  testing::AssertionResult Becomes(const std::function<bool()>& question, const char* what) {
    for (const auto end = steady_clock::now() + seconds(60 * kPatience); steady_clock::now() < end;) {
      if (question()) return testing::AssertionSuccess();
      std::this_thread::sleep_for(milliseconds(20));  // Between two looks; other processes work.
    }
    return testing::AssertionFailure() << "not after a minute: " << what;
  }
  testing::AssertionResult HasBegun(const std::string& job) {
    return Becomes(
        [&] {
          return !cluster_.Run({"job", "logs", job}).output.empty();
        },
        "the job has printed something");
  }

  // One job that meets the network as `fault` makes it, for that long.
  void Run(const std::string& name, milliseconds duration, const std::function<void()>& fault) {
    SCOPED_TRACE(name + " for " + std::to_string(duration.count()) + " ms");
    Appearances appearances(cluster_.folder(), "w.csv");
    const std::string job = Submit();
    ASSERT_TRUE(HasBegun(job));
    fault();
    std::this_thread::sleep_for(duration);  // The fault itself is what is tested.
    ForAll([](FaultProxy& proxy) { proxy.Mend(); });
    const Finished outcome = cluster_.Run({"job", "wait", job});
    ASSERT_EQ(outcome.code, 0) << outcome.errors << Status(job);
    EXPECT_EQ(cluster_.Run({"job", "logs", job}).output, expected_);
    EXPECT_EQ(ReadText(file()), expected_file_);
    const int appeared = appearances.Count();
    const int attempts = AttemptOf(job);
    EXPECT_GE(appeared, 1);
    EXPECT_LE(appeared, 3 * attempts);
    // Executors of attempts that were given up end, and have written nothing more.
    ASSERT_TRUE(Becomes(
        [&] {
          for (const size_t worker : {0, 1})
            if (!ClusterOfProcesses::ChildrenOf(cluster_.worker(worker).pid()).empty()) return false;
          return true;
        },
        "no executor runs any more"));
    EXPECT_EQ(appearances.Count(), appeared);
    EXPECT_EQ(ReadText(file()), expected_file_);
    std::printf("%s for %lld ms: %d attempts, the file appeared %d times\n", name.c_str(),
                static_cast<long long>(duration.count()), attempts, appeared);
    std::filesystem::remove(file());
    ASSERT_TRUE(Becomes([&] { return std::filesystem::is_empty(place_.path()); }, "no checkpoint is left"));
    ASSERT_TRUE(Becomes(
        [&] {
          return cluster_.Run({"job", "submit", "--workers", "2", "-e", "print(2)"}).output == "2\n";
        },
        "both workers take a job"));
  }
  void RunForAll(const std::string& name, const std::function<void()>& fault) {
    for (const milliseconds duration : Durations()) Run(name, duration, fault);
  }

  const TemporaryFolder place_;
  ClusterOfProcesses cluster_;
  std::vector<std::unique_ptr<FaultProxy>> proxies_;
  std::string expected_, expected_file_;
};

TEST_F(NetworkTest, DelayAndJitterNeedNoOtherAttempt) {
  ForAll([](FaultProxy& proxy) { proxy.Set({.delay = milliseconds(200), .jitter = milliseconds(50)}); });
  const std::string job = Submit();
  EXPECT_EQ(cluster_.Run({"job", "wait", job}).code, 0);
  EXPECT_EQ(cluster_.Run({"job", "logs", job}).output, expected_);
  EXPECT_EQ(ReadText(file()), expected_file_);
  EXPECT_EQ(AttemptOf(job), 1);
  cluster_.EndAndExpectNothingLeft();
}

// In the place of packets that are lost, for machines that lose none: what a TCP connection does not survive.
TEST_F(NetworkTest, ConnectionsThatBreakAtRandomCostNothing) {
  ForAll([](FaultProxy& proxy) {
    proxy.Set({.delay = milliseconds(20), .bytes_per_second = 1 << 20, .broken = 0.05});
  });
  const std::string job = Submit();
  const Finished outcome = cluster_.Run({"job", "wait", job});
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(cluster_.Run({"job", "logs", job}).output, expected_);
  EXPECT_EQ(ReadText(file()), expected_file_);
  EXPECT_GT(proxies_[0]->broken() + proxies_[1]->broken(), 0);
  ForAll([](FaultProxy& proxy) { proxy.Set({}); });
  cluster_.EndAndExpectNothingLeft();
}

TEST_F(NetworkTest, AWorkerThatIsCutOffChangesNoByte) {
  Run("alpha is cut off", milliseconds(1'000), [this] { proxies_[0]->Cut(); });
  RunForAll("all that alpha says is lost", [this] { proxies_[0]->Cut(Way::kToTarget); });
  RunForAll("all that alpha is told is lost", [this] { proxies_[0]->Cut(Way::kToCaller); });
  cluster_.EndAndExpectNothingLeft();
}

TEST_F(NetworkTest, AMasterThatIsCutOffChangesNoByte) {
  RunForAll("the master is cut off", [this] { ForAll([](FaultProxy& proxy) { proxy.Cut(); }); });
  RunForAll("the master hears nothing",
            [this] { ForAll([](FaultProxy& proxy) { proxy.Cut(Way::kToTarget); }); });
  cluster_.EndAndExpectNothingLeft();
}

TEST_F(NetworkTest, HalfOpenConnectionsChangeNoByte) {
  RunForAll("connections of beta are half open", [this] { proxies_[1]->Forget(); });
  RunForAll("all connections are half open", [this] { ForAll([](FaultProxy& proxy) { proxy.Forget(); }); });
  cluster_.EndAndExpectNothingLeft();
}

// A job that is not to be started again fails within the lease, and says why.
TEST_F(NetworkTest, AJobThatMayNotBeRepeatedFailsWithinTheLease) {
  Appearances appearances(cluster_.folder(), "w.csv");
  const std::string job = Submit({"--retry-for", "0"});
  ASSERT_TRUE(HasBegun(job));
  const int appeared = appearances.Count();
  const auto begin = steady_clock::now();
  proxies_[0]->Cut(Way::kToTarget);
  const Finished outcome = cluster_.Run({"job", "wait", job});
  const auto took = steady_clock::now() - begin;
  EXPECT_EQ(outcome.code, 6) << outcome.errors;
  EXPECT_NE(outcome.errors.find("alpha"), std::string::npos) << outcome.errors;
  EXPECT_LE(took, milliseconds(LeaseMs() * kLeasePatience + 5'000 * kPatience)) << outcome.errors;
  std::printf("told after %.1f s: %s", std::chrono::duration<double>(took).count(), outcome.errors.c_str());
  proxies_[0]->Mend();
  ASSERT_TRUE(Becomes([&] { return ClusterOfProcesses::ChildrenOf(cluster_.worker(0).pid()).empty(); },
                      "the executor that was cut off ends"));
  EXPECT_LE(appearances.Count(), appeared + 1) << "one that was allowed before the cut";
  cluster_.EndAndExpectNothingLeft();
}

}  // namespace
}  // namespace heddle::testing_support
