// SPDX-License-Identifier: Apache-2.0
// Steps of an act on a device, whatever the device.
#include "ops/device/run/device_act.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/memory/counted_heap.h"

namespace heddle::ops::testing {
namespace {

// Takes a step at the queue, one here and one on the processor.
class ActOfThreePlaces : public DeviceAct {
 public:
  using DeviceAct::DeviceAct;
  std::vector<HeapMode> modes;

 protected:
  Status Advance() override {
    modes.push_back(CurrentHeapMode());
    if (modes.size() == 3) {
      Done();
    } else {
      GoOn(modes.size() == 1 ? Place::kHere : Place::kProcessor);
    }
    return OkStatus();
  }
};

// Commands that are queued name memory of the host, which an exception would free under them.
TEST(DeviceActTest, TheHeapRefusesNothingToAStepAtTheQueue) {
  DeviceStreams streams;
  KernelContext context;
  ActOfThreePlaces act({.streams = streams, .context = context, .user = "a test"});
  ASSERT_TRUE(TakeAllSteps(act).ok());
  EXPECT_EQ(act.modes, (std::vector{HeapMode::kCounts, HeapMode::kRefuses, HeapMode::kRefuses}));
}

class FailingAct : public DeviceAct {
 public:
  using DeviceAct::DeviceAct;

 protected:
  Status Advance() override { return ResourceExhausted("no memory"); }
};

TEST(DeviceActTest, ErrorsHaveThePlaceOfWhatRuns) {
  DeviceStreams streams;
  KernelContext context;
  FailingAct act(
      {.streams = streams, .context = context, .user = "a test", .position = {"cg.dml", 14, 7}});
  EXPECT_EQ(TakeAllSteps(act).position(), (SourcePosition{"cg.dml", 14, 7}));
}

}  // namespace
}  // namespace heddle::ops::testing
