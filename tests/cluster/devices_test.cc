// SPDX-License-Identifier: Apache-2.0
// Jobs on devices of workers (docs/devices.md, "On a cluster"): the same bytes, on workers that offer one and on
// those that do not. On machines without an OpenCL device (Debian: pocl-opencl-icd) the former are skipped.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cluster/cluster_of_processes.h"

namespace heddle {
namespace {

using testing_support::BackgroundProcess;
using testing_support::ClusterOfProcesses;
using testing_support::Finished;

// A loop that reads and leaves values on the device, a product, and values that go back and forth.
constexpr const char* kScript =
    "X = rand(rows=900, cols=12, seed=1); w = matrix(0.5, 12, 1)\n"
    "for (i in 1:3) w = w - 0.001 * (t(X) %*% (X %*% w))\n"
    "X[2, ] = t(w); print(sum(exp(X))); print(toString(w)); print(sum(cumsum(X)[500, ]))";

class DeviceJobs : public testing::Test {
 protected:
  void SetUp() override {
    const Finished listed = testing_support::RunProcess({testing_support::Binary(), "devices", "--json"},
                                                        cluster_.folder(), 120);
    const auto devices = nlohmann::json::parse(listed.output, nullptr, /*allow_exceptions=*/false);
    if (!devices.is_object() || devices["devices"].empty() || !devices["devices"][0]["is_usable"])
      GTEST_SKIP() << "this machine has no OpenCL device";
  }
  BackgroundProcess& StartWorker(const std::string& name, const std::string& devices) {
    workers_.push_back(
        cluster_.Start({"worker", "--name", name, "--threads", "1", "--devices", devices}));
    EXPECT_TRUE(workers_.back()->WaitFor("works for the master", 120)) << workers_.back()->output();
    return *workers_.back();
  }
  Finished Submit(std::vector<std::string> options) {
    options.insert(options.begin(), {"job", "submit", "--min-distributed-bytes", "0"});
    options.insert(options.end(), {"-e", kScript});
    return cluster_.Run(options);
  }
  std::string LogOf(const std::string& job, const std::string& rank) {
    return cluster_.Run({"job", "logs", job, "--rank", rank}).output;
  }
  std::string Expected() { return cluster_.Run({"run", "-e", kScript}).output; }

  ClusterOfProcesses cluster_;
  std::vector<std::unique_ptr<BackgroundProcess>> workers_;
};

constexpr const char* kInPlace = "the processor computes in place of a device";

TEST_F(DeviceJobs, ComputeTheSameBytesOnAllWorkersAndOnSome) {
  StartWorker("a", "cpu");
  const BackgroundProcess& worker = StartWorker("b", "opencl:0");
  EXPECT_EQ(worker.output().find("--devices"), std::string::npos) << worker.output();
  const Finished nodes = cluster_.Run({"admin", "nodes"});
  EXPECT_NE(nodes.output.find(" opencl:0 "), std::string::npos) << nodes.output;
  const std::string expected = Expected();

  // b makes the plans, and a follows them on its processor.
  const Finished both = Submit({"--devices", "opencl:0", "-stats"});
  EXPECT_EQ(both.code, 0) << both.errors;
  EXPECT_EQ(both.output.substr(0, expected.size()), expected);
  EXPECT_NE(both.errors.find("heddle: job j1: a offers no opencl:0 (heddle worker --devices): its processor "
                             "computes in its place\n"),
            std::string::npos)
      << both.errors;
  EXPECT_NE((both.output + both.errors).find("transfer "), std::string::npos) << both.output << both.errors;
  EXPECT_EQ(LogOf("j1", "0").find(kInPlace), std::string::npos) << LogOf("j1", "0");
  const std::string log = LogOf("j1", "1");
  EXPECT_NE(log.find(kInPlace), std::string::npos) << log;
  EXPECT_NE(log.find("the worker offers no device (heddle worker --devices)"), std::string::npos) << log;

  // What is faster by measured rates; a random half of it; and not any.
  for (const char* const devices : {"auto", "opencl:0/random:3", "cpu"}) {
    const Finished one = Submit({"--workers", "1", "--devices", devices});
    EXPECT_EQ(one.code, 0) << one.errors;
    EXPECT_EQ(one.output, expected) << devices;
    EXPECT_EQ(one.errors, "") << devices;
  }
  // The kernel and the worker keep it from others, whatever the job says.
  const Finished other = Submit({"--workers", "1", "--devices", "opencl:1"});
  EXPECT_EQ(other.code, 0) << other.errors;
  EXPECT_EQ(other.output, expected);
  EXPECT_NE(other.errors.find("a offers no opencl:1"), std::string::npos) << other.errors;
}

// A rank with the device drops copies to make room for a plan. One without the device drops them, too, or
// ranks would look for different plans from then on.
TEST_F(DeviceJobs, RanksWithoutTheDeviceMakeRoomAlike) {
  StartWorker("a", "opencl:0");
  StartWorker("b", "cpu");
  const std::string script =
      "X = rand(rows=9000, cols=1000, seed=1); Y = rand(rows=9000, cols=1000, seed=2); s = 0\n"
      "for (k in 1:2) {\n"
      "  for (i in 1:2) s = s + sum(exp(X * i)) + sum(exp(Y * i))\n"
      "  if (s > 0) { Z = rand(rows=20000, cols=1000, seed=k); s = s + sum(exp(Z)) }\n"
      "}\n"
      "print(s)";
  const Finished job = cluster_.Run(
      {"job", "submit", "--workers", "2", "--memory", "300M", "--devices", "opencl:0", "-e", script});
  EXPECT_EQ(job.code, 0) << job.errors;
  EXPECT_EQ(job.output, cluster_.Run({"run", "-e", script}).output);
}

TEST_F(DeviceJobs, AWorkerWithoutTheDeviceWorksAndSaysSo) {
  const BackgroundProcess& worker = StartWorker("a", "opencl:99");
  EXPECT_NE(worker.output().find("--devices opencl:99: there is no opencl:99, the last device is opencl:"),
            std::string::npos)
      << worker.output();
  EXPECT_NE(worker.output().find("; jobs compute on the processor ('heddle devices' tells more)"),
            std::string::npos)
      << worker.output();
  const Finished job = Submit({"--devices", "auto"});
  EXPECT_EQ(job.code, 0) << job.errors;
  EXPECT_EQ(job.output, Expected());
  EXPECT_NE(job.errors.find("a offers no device (heddle worker --devices)"), std::string::npos) << job.errors;
}

TEST(WorkerDevicesOption, ATypoIsRefused) {
  const testing_support::TemporaryFolder folder;
  for (const std::vector<std::string>& verb : {std::vector<std::string>{"worker"}, {"job", "submit"}}) {
    std::vector<std::string> words = {testing_support::Binary()};
    words.insert(words.end(), verb.begin(), verb.end());
    words.insert(words.end(), {"--devices", "gpu"});
    if (verb.size() > 1) words.insert(words.end(), {"-e", "print(1)"});
    const Finished refused = testing_support::RunProcess(words, folder.path());
    EXPECT_EQ(refused.code, 2) << refused.errors;
    EXPECT_NE(refused.errors.find("--devices takes cpu, auto, or opencl:0 to opencl:127, not 'gpu'"),
              std::string::npos)
        << refused.errors;
  }
}

}  // namespace
}  // namespace heddle
