// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/device_of_job.h"

#include <gtest/gtest.h>

#include "cluster/placement/placement.h"
#include "cluster/worker/worker_device.h"

namespace heddle::cluster {
namespace {

WorkerDescription WorkerWith(const std::string& name, const std::string& device) {
  WorkerDescription worker;
  worker.uuid = worker.name = name;
  worker.device = device;
  return worker;
}

TEST(DeviceOfJobTest, ANoteNamesTheWorkersWithoutIt) {
  const WorkerDescription a = WorkerWith("a", ""), b = WorkerWith("b", "opencl:1"), c = WorkerWith("c", "");
  EXPECT_EQ(DevicesOn({&a, &b}, "cpu"), "cpu");
  EXPECT_EQ(DevicesOn({&a, &b}, "opencl:0"), "cpu");
  EXPECT_EQ(DevicesOn({&a, &b}, "opencl:1/random:2"), "opencl:1/random:2");
  EXPECT_EQ(DevicesOn({&a, &b}, "auto"), "opencl:1/cost");
  EXPECT_EQ(DevicesOn({&a, &c}, "auto"), "cpu");
  EXPECT_EQ(NoteOnDevices({&a, &b}, "cpu"), "");
  EXPECT_EQ(NoteOnDevices({&b}, "opencl:1/random:7"), "");
  EXPECT_EQ(NoteOnDevices({&b, &a}, "auto"),
            "a offers no opencl:1 (heddle worker --devices): its processor computes in its place");
  EXPECT_EQ(NoteOnDevices({&a, &b, &c}, "opencl:1"),
            "a, c offer no opencl:1 (heddle worker --devices): their processors compute in its place");
  EXPECT_EQ(NoteOnDevices({&a, &c}, "auto"),
            "a, c offer no device (heddle worker --devices): their processors compute in its place");
}

// Rank 0 makes the plans: it is to have the device. Who is busy with it is not waited for.
TEST(DeviceOfJobTest, WorkersThatHaveItComeFirst) {
  std::vector<Worker> workers(3);
  workers[0].description = WorkerWith("a", "");
  workers[1].description = WorkerWith("b", "opencl:0");
  workers[2].description = WorkerWith("c", "opencl:1");
  const auto names = [&](const Demand& demand) {
    const Placement placement({&workers[0], &workers[1], &workers[2]},
                              [](const std::string&) { return Placement::kNever; });
    const Placement::Choice choice = placement.Choose(demand, {}, Placement::kNever);
    EXPECT_TRUE(choice.fits);
    std::string text;
    for (const Worker* const worker : choice.workers) text += worker->description.name;
    return text;
  };
  EXPECT_EQ(names({}), "abc");
  EXPECT_EQ(names({.device = "auto"}), "bca");
  EXPECT_EQ(names({.workers = 1, .device = "opencl:1"}), "c");
  EXPECT_EQ(names({.workers = 2, .device = "opencl:7"}), "ab");
  workers[2].shares["j1"] = {1, 0};
  EXPECT_EQ(names({.workers = 1, .device = "opencl:1"}), "a");
}

// The list is one line.
constexpr const char* kListed =
    "a driver says hello\n"
    R"({"devices":[)"
    R"({"device":"opencl:0","name":"pocl","is_usable":true,"is_host":true,"memory_bytes_per_s":9e9},)"
    R"({"device":"opencl:1","name":"slow","is_usable":true,"is_host":false,"memory_bytes_per_s":1e9},)"
    R"({"device":"opencl:2","name":"fast","is_usable":true,"is_host":false,"memory_bytes_per_s":2e9},)"
    R"({"device":"opencl:3","name":"odd","is_usable":false,"is_host":false,"refused":"1/3 differs",)"
    R"("memory_bytes_per_s":0}],"why":"","next":""})"
    "\nand good-bye\n";

TEST(WorkerDeviceTest, TheFastestThatIsNoProcessor) {
  const auto chosen = [](const std::string& devices) { return *ChooseWorkerDevice(devices, kListed); };
  EXPECT_EQ(chosen("auto").device, "opencl:2");
  EXPECT_EQ(chosen("auto").name, "fast");
  EXPECT_EQ(chosen("auto").why_not, "");
  EXPECT_EQ(chosen("opencl:0").name, "pocl");
  EXPECT_EQ(chosen("opencl:3").device, "");
  EXPECT_EQ(chosen("opencl:3").why_not, "opencl:3: 1/3 differs");
  EXPECT_EQ(chosen("opencl:4").why_not, "there is no opencl:4, the last device is opencl:3");
}

TEST(WorkerDeviceTest, WhereThereIsNoneItSaysWhy) {
  const Result<WorkerDevice> none =
      ChooseWorkerDevice("auto", R"({"devices":[],"why":"OpenCL knows no device","next":""})");
  EXPECT_EQ(none->why_not, "OpenCL knows no device");
  const Result<WorkerDevice> host =
      ChooseWorkerDevice("auto", R"({"devices":[{"device":"opencl:0","is_host":true}],"why":""})");
  EXPECT_EQ(host->why_not, "this machine has no device beside its processor");
  EXPECT_EQ(ChooseWorkerDevice("auto", "Segmentation fault\n").status().message(),
            "'heddle devices' lists none: it says 'Segmentation fault'");
  EXPECT_EQ(ChooseWorkerDevice("auto", "").status().message(), "'heddle devices' lists none: it says ''");
}

}  // namespace
}  // namespace heddle::cluster
