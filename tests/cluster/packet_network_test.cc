// SPDX-License-Identifier: Apache-2.0
// A master and workers on hosts of their own (tests/support/packet_network.h), by TLS, while packets are lost
// and late and some ways are cut: jobs end with the bytes of a quiet run, and nothing is left over. With
// HEDDLE_NETWORK=full cuts last for 1, 30 and 120 s and the lease is the usual one.
#include "tests/support/packet_network.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>

#include "tests/cluster/cluster_of_processes.h"

namespace heddle::testing_support {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

bool IsFull() {
  const char* const size = std::getenv("HEDDLE_NETWORK");
  return size != nullptr && std::string(size) == "full";
}
int LeaseMs() { return IsFull() ? 10'000 : 3'000; }
std::vector<milliseconds> Durations() {
  if (IsFull()) return {seconds(1), seconds(30), seconds(120)};
  return {milliseconds(1'000), milliseconds(2 * LeaseMs() * kLeasePatience)};
}

constexpr const char* kScript =
    "X = rand(rows=2000, cols=10, seed=7)\nw = matrix(0, rows=10, cols=1)\n"
    "for (i in 1:$n) {\n"
    "  w = w - 0.0001 * (t(X) %*% (X %*% w - rowSums(X)))\n"
    "  t = time()\n  while (time() - t < 5e7) { t = t }\n"
    "  print(i + \" \" + sum(w))\n}\nwrite(w, \"w.csv\", format=\"csv\")\n";

// Host 0 is the master's, 1 and 2 are those of workers. Clients are at the master's.
class PacketNetworkTest : public testing::Test {
 protected:
  static constexpr size_t kMaster = 0, kAlpha = 1, kBeta = 2;

  void SetUp() override {
    std::string why_not;
    network_ = PacketNetwork::Make(3, 7, &why_not);
    if (network_ == nullptr) GTEST_SKIP() << why_not;
    std::filesystem::create_directories(folder() + "/tmp");
    setenv("TMPDIR", (folder() + "/tmp").c_str(), 1);
    setenv("XDG_STATE_HOME", (folder() + "/state").c_str(), 1);
    WriteText(folder() + "/script.dml", kScript);
    const std::string host = PacketNetwork::AddressOf(kMaster);
    for (const std::vector<std::string>& words : {std::vector<std::string>{"authority", "--folder", "tls"},
                                                  {"server", "--folder", "tls", "--host", host}}) {
      std::vector<std::string> all = {Binary(), "admin", "cert"};
      all.insert(all.end(), words.begin(), words.end());
      ASSERT_EQ(RunProcess(all, folder()).code, 0);
    }
    master_ =
        Start(kMaster, {"master", "--dev", "--listen", host + ":0", "--lease-ms",
                        std::to_string(LeaseMs() * kLeasePatience), "--tls-certificate", "tls/server.pem",
                        "--tls-key", "tls/server.key", "--checkpoints", place_.path()});
    ASSERT_TRUE(master_->WaitFor("listens on ")) << master_->output();
    const std::string line = ReadText(folder() + "/state/heddle/master/address");
    address_ = line.substr(0, line.find('\n'));
    for (const size_t worker : {kAlpha, kBeta}) {
      workers_.push_back(Start(
          worker, {"worker", "--name", worker == kAlpha ? "alpha" : "beta", "--threads", "1", "--master",
                   address_, "--tls-ca", "tls/ca.pem", "--token-file", "state/heddle/master/worker.token",
                   "--peer-host", PacketNetwork::AddressOf(worker)}));
      ASSERT_TRUE(workers_.back()->WaitFor("works for the master")) << workers_.back()->output();
    }
  }
  void TearDown() override {
    if (network_ == nullptr) return;
    network_->Set({});
    network_->Mend();
    for (const auto& worker : workers_) {
      worker->Signal(SIGTERM);
      EXPECT_EQ(worker->Wait(), 0) << worker->output();
    }
    if (master_ != nullptr) {
      master_->Signal(SIGTERM);
      EXPECT_EQ(master_->Wait(), 0) << master_->output();
    }
    EXPECT_TRUE(std::filesystem::is_empty(folder() + "/tmp"));
    EXPECT_TRUE(std::filesystem::is_empty(place_.path()));
    unsetenv("TMPDIR");
    std::printf("%lld packets, %lld of them lost\n", static_cast<long long>(network_->passed()),
                static_cast<long long>(network_->lost()));
  }

  const std::string& folder() const { return folder_.path(); }
  std::unique_ptr<BackgroundProcess> Start(size_t host, std::vector<std::string> words) {
    std::vector<std::string> all = network_->Within(host);
    all.push_back(Binary());
    all.insert(all.end(), words.begin(), words.end());
    return std::make_unique<BackgroundProcess>(std::move(all), folder());
  }
  Finished Client(std::vector<std::string> words) {
    std::vector<std::string> all = network_->Within(kMaster);
    all.push_back(Binary());
    all.insert(all.end(), words.begin(), words.begin() + 2);
    all.insert(all.end(), {"--master", address_, "--tls-ca", "tls/ca.pem", "--token-file",
                           "state/heddle/master/client.token"});
    all.insert(all.end(), words.begin() + 2, words.end());
    return RunProcess(all, folder(), 300);
  }

  void Prepare(int rounds) {
    rounds_ = "n=" + std::to_string(rounds);
    const Finished quiet = RunProcess({Binary(), "run", "script.dml", "-nvargs", rounds_}, folder());
    ASSERT_EQ(quiet.code, 0) << quiet.errors;
    expected_ = quiet.output;
    expected_file_ = ReadText(folder() + "/w.csv");
  }
  std::string Submit() {
    std::filesystem::remove(folder() + "/w.csv");
    const Finished job = Client({"job", "submit", "--detach", "--workers", "2", "--checkpoint", "500ms",
                                 "--min-distributed-bytes", "0", "script.dml", "-nvargs", rounds_});
    EXPECT_EQ(job.code, 0) << job.errors;
    return job.output.substr(0, job.output.find('\n'));
  }
  void ExpectOutcome(const std::string& job) {
    const Finished outcome = Client({"job", "wait", job});
    ASSERT_EQ(outcome.code, 0) << outcome.errors << Client({"job", "status", job}).output;
    EXPECT_EQ(Client({"job", "logs", job}).output, expected_);
    EXPECT_EQ(ReadText(folder() + "/w.csv"), expected_file_);
  }
  // One job that has begun when ways of the network are cut, and goes on when they are mended.
  void RunWithCuts(const std::vector<std::pair<size_t, size_t>>& ways) {
    for (const milliseconds duration : Durations()) {
      SCOPED_TRACE(std::to_string(duration.count()) + " ms");
      const std::string job = Submit();
      const auto end = steady_clock::now() + seconds(60 * kPatience);
      while (Client({"job", "logs", job}).output.empty() && steady_clock::now() < end) {
      }
      for (const auto& [from, to] : ways) network_->Cut(from, to);
      std::this_thread::sleep_for(duration);  // The cut itself is what is tested.
      network_->Mend();
      ExpectOutcome(job);
      std::printf("%lld ms: %s", static_cast<long long>(duration.count()),
                  Client({"job", "status", job}).output.c_str());
    }
  }

  const TemporaryFolder folder_, place_;
  std::unique_ptr<PacketNetwork> network_;
  std::unique_ptr<BackgroundProcess> master_;
  std::vector<std::unique_ptr<BackgroundProcess>> workers_;
  std::string address_, rounds_, expected_, expected_file_;
};

TEST_F(PacketNetworkTest, LossDelayAndReorderingCostOnlyTime) {
  Prepare(IsFull() ? 60 : 8);
  network_->Set(
      {.loss = 0.05, .delay = milliseconds(100), .jitter = milliseconds(20)});  // 200 ms there and back
  ExpectOutcome(Submit());
  EXPECT_GT(network_->lost(), 10);
}

TEST_F(PacketNetworkTest, WorkersThatCannotHearEachOtherChangeNoByte) {
  Prepare(30);
  RunWithCuts({{kAlpha, kBeta}});
}

TEST_F(PacketNetworkTest, AWorkerThatCannotSpeakChangesNoByte) {
  Prepare(30);
  RunWithCuts({{kAlpha, kMaster}, {kAlpha, kBeta}});
}

TEST_F(PacketNetworkTest, AMasterThatCannotSpeakChangesNoByte) {
  Prepare(30);
  RunWithCuts({{kMaster, kAlpha}, {kMaster, kBeta}});
}

}  // namespace
}  // namespace heddle::testing_support
