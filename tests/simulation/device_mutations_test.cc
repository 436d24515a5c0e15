// SPDX-License-Identifier: Apache-2.0
// What planners of copies and runtimes may do wrong with a device is found, and named: by Verify before the
// plan runs, or by the simulated device (tests/support/simulated_device.h) in the deterministic simulation.
// On machines without an OpenCL device these tests are skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/plan_memory.h"
#include "tests/simulation/plans_on_device.h"
#include "tests/support/seeds.h"

namespace heddle::testing_support {
namespace {

class DeviceMutationsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (RealDevice() == nullptr) GTEST_SKIP() << "this machine has no OpenCL device";
  }
};

// A task reads another register than before, as a planner does that forgets a copy.
Plan ReadInstead(Plan plan, size_t task, RegisterId copy, RegisterId source) {
  Task& reader = plan.tasks[task];
  std::replace(reader.consumed.begin(), reader.consumed.end(), copy, source);
  std::erase(plan.registers[static_cast<size_t>(copy)].consumers, reader.id);
  std::vector<TaskId>& consumers = plan.registers[static_cast<size_t>(source)].consumers;
  std::erase(consumers, reader.id);
  consumers.push_back(reader.id);
  return plan;
}

// Every reader of every copy takes what is copied instead, one at a time: as without the copy, in or back.
TEST_F(DeviceMutationsTest, ACopyThatIsLeftOutIsFound) {
  int mutants[2] = {0, 0};
  for (uint64_t seed = 0; seed < 9; ++seed) {
    const CaseOnDevice some(seed);
    const Plan plan = some.PlanOf(OptionsOfDevice(seed));
    for (const Task& transfer : plan.tasks) {
      if (transfer.phase != Phase::kTransfer) continue;
      const RegisterId copy = transfer.produced[0], source = transfer.consumed[0];
      for (size_t i = 0; i < plan.tasks.size(); ++i) {
        const Task& reader = plan.tasks[i];
        if (reader.id.rank() != transfer.id.rank() || reader.kind != TaskKind::kCompute ||
            std::find(reader.consumed.begin(), reader.consumed.end(), copy) == reader.consumed.end())
          continue;
        SCOPED_TRACE(testing::Message() << "seed " << seed << ", task " << i << " of " << plan.ToText());
        const Plan mutant = ReadInstead(plan, i, copy, source);
        EXPECT_NE(Verify(mutant).message().find("memory of"), std::string::npos) << Verify(mutant).message();
        SimulatedDevice device(*RealDevice(), {.seed = seed});
        const Status status = RunPlan(mutant, some.live_in, {.seed = seed}, &device).status();
        EXPECT_NE(status.message().find("cells in another memory than its device's"), std::string::npos)
            << status.ToString();
        ++mutants[transfer.id.device() == plan.registers[static_cast<size_t>(copy)].device];
      }
    }
  }
  EXPECT_GT(mutants[0], 3);
  EXPECT_GT(mutants[1], 10);
}

// A register that does not know of a reader gives its memory back before: the plan is refused, and a run of
// it does not end.
TEST_F(DeviceMutationsTest, MemoryThatIsGivenBackBeforeItsLastReaderIsFound) {
  int mutants = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const CaseOnDevice some(seed);
    const Plan plan = some.PlanOf(OptionsOfDevice(seed));
    for (size_t r = 0; r < plan.registers.size(); ++r) {
      if (plan.registers[r].device.IsHost() || plan.registers[r].consumers.empty()) continue;
      Plan mutant = plan;
      mutant.registers[r].consumers.pop_back();
      EXPECT_NE(Verify(mutant).message().find("lists other consumers"), std::string::npos);
      SimulatedDevice device(*RealDevice(), {.seed = seed});
      EXPECT_FALSE(RunPlan(mutant, some.live_in, {.seed = seed}, &device).ok()) << "register " << r;
      ++mutants;
    }
  }
  EXPECT_GT(mutants, 10);
}

// What a run of the plan on the simulated device has found wrong; "" where nothing is.
std::string FoundBy(const Plan& plan, const CaseOnDevice& some, const DeviceRun& run,
                    const SimulatedDeviceOptions& options, const Pieces& expected,
                    bool* has_missed_wait = nullptr) {
  SimulatedDevice device(*RealDevice(), options);
  std::string found;
  {
    const Result<Pieces> actual = RunPlan(plan, some.live_in, run, &device);
    found = actual.ok() ? "" : actual.status().ToString();
    for (size_t rank = 0; actual.ok() && rank < expected.size(); ++rank)
      for (const auto& [name, value] : expected[rank]) {
        auto cells = (*actual)[rank].find(name);
        if (cells == (*actual)[rank].end()) cells = (*actual)[rank].find(NameOnDevice(name));
        if (!Matrix::SameCells(value.matrix(), cells->second.matrix())) found += "other cells of " + name;
      }
  }
  for (const std::string& fault : device.faults()) found += fault + "\n";
  if (has_missed_wait != nullptr) *has_missed_wait = device.has_missed_wait();
  return found;
}

// A queue that does not wait for the mark of another one, one wait at a time: whenever it would have told the
// queue something, the next command reads what nothing has told to be there.
TEST_F(DeviceMutationsTest, AWaitForAMarkThatIsLeftOutIsFound) {
  int mutants = 0;
  const Seeds seeds = SeedsOf(12);
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    const CaseOnDevice some(seed);
    const Plan plan = some.PlanOf(OptionsOfDevice(seed));
    const Result<Pieces> expected =
        RunPlan(some.PlanOf(std::nullopt), some.live_in, {.seed = seed}, nullptr);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    int64_t waits = 0;
    {
      SimulatedDevice device(*RealDevice(), {.seed = seed});
      ASSERT_TRUE(RunPlan(plan, some.live_in, {.seed = seed}, &device).ok());
      waits = device.waits();
    }
    for (int64_t wait = 0; wait < waits; ++wait) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", wait " << wait);
      bool matters = false;
      const std::string found = FoundBy(plan, some, {.seed = seed}, {.seed = seed, .unheard_wait = wait},
                                        *expected, &matters);
      if (matters) {
        EXPECT_NE(found.find("and does not wait for it"), std::string::npos) << found;
      } else {
        EXPECT_EQ(found, "");
      }
      mutants += matters;
    }
  }
  EXPECT_GT(mutants, 8);
}

// A copy that ends before its commands, one at a time, of plans whose values are whole and of such as are in
// panels: cells are read before they are back, or before they are there, and memory is given back while a
// command needs it. In some order of what happens it is seen, and named.
TEST_F(DeviceMutationsTest, ACopyThatDoesNotWaitForItsCommandsIsFound) {
  constexpr uint64_t kOrders = 15;
  int mutants = 0, found_in_all = 0;
  std::set<std::string> reasons;
  const Seeds seeds = SeedsOf(6);
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    const bool in_panels = seed % 2 == 1;
    const CaseOnDevice some(seed, in_panels ? 150 : 100, /*most_ranks=*/2);
    const Plan plan = some.PlanOf(OptionsOfDevice(seed), in_panels ? 4000 : 0);
    const Result<Pieces> expected =
        RunPlan(some.PlanOf(std::nullopt), some.live_in, {.seed = seed}, nullptr);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    DeviceRunReport report;
    {
      SimulatedDevice device(*RealDevice(), {.seed = seed});
      ASSERT_TRUE(RunPlan(plan, some.live_in, {.seed = seed}, &device, &report).ok());
    }
    for (int64_t wait = 0; wait < report.waits; ++wait) {
      std::string found;
      for (uint64_t order = 0; found.empty() && order < kOrders; ++order)
        found = FoundBy(plan, some, {.seed = seed + 1000 * order, .hasty_wait = wait},
                        {.seed = seed + 1000 * order, .most_delay_ns = 20'000}, *expected);
      ++mutants;
      found_in_all += !found.empty();
      for (const char* const reason : {"that nothing has read back yet", "and does not wait for it",
                                       "is freed, and nobody has waited", "which nothing has written"})
        if (found.find(reason) != std::string::npos) reasons.insert(reason);
    }
  }
  EXPECT_GT(mutants, 20);
  // Who reads a copy may wait for a later one of the same queue, too.
  EXPECT_GT(found_in_all, mutants * 9 / 10) << mutants;
  EXPECT_GE(reasons.size(), 3u) << testing::PrintToString(reasons);
}

// The guard edges of a plan whose script has no effects: (control register, position among its consumers), of
// tasks of the device.
using Guards = std::vector<std::pair<size_t, size_t>>;
Guards GuardsOf(const Plan& plan) {
  Guards guards;
  for (size_t i = 0; i < plan.registers.size(); ++i)
    for (size_t j = 0; plan.registers[i].control && j < plan.registers[i].consumers.size(); ++j)
      if (!plan.registers[i].consumers[j].device().IsHost()) guards.emplace_back(i, j);
  return guards;
}

Plan Without(const Plan& plan, const Guards& guards) {
  Plan mutant = plan;
  for (auto guard = guards.rbegin(); guard != guards.rend(); ++guard) {
    Register& reg = mutant.registers[guard->first];
    const TaskId waiting = reg.consumers[guard->second];
    std::erase(reg.consumers, waiting);
    for (Task& task : mutant.tasks)
      if (task.id == waiting) std::erase(task.control_in, reg.id);
  }
  return mutant;
}

// What kernels have there beside the values of a plan: flags, and leaves of reductions.
constexpr int64_t kBytesOfKernels = 60'000;

// Values take turns in the memory of the device: each begins when those whose place it has are read. Without
// one of these orders there is more in use than the plan says.
TEST_F(DeviceMutationsTest, AGuardOfDeviceMemoryThatIsLeftOutIsFound) {
  constexpr int64_t kRows = 2500;  // Of 80 kB.
  constexpr uint64_t kOrders = 20;
  int plans = 0, guards = 0, found = 0, found_plans = 0;
  const Seeds seeds = SeedsOf(16);
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    const CaseOnDevice some(seed, kRows, /*most_ranks=*/1);
    const Plan plan = some.PlanOf(scheduler::DeviceOptions{.device = kGpu});
    const Guards all = GuardsOf(plan);
    const int64_t planned = scheduler::PeakOnDevice(plan, kGpu) + kBytesOfKernels;
    const auto found_in = [&](const Plan& of) {
      for (uint64_t order = 0; order < kOrders; ++order) {
        const uint64_t of_order = seed + 1000 * order;
        const std::string what = FoundBy(of, some, {.seed = of_order, .ends_with_commands = true},
                                         {.seed = of_order, .planned_bytes = planned}, {});
        EXPECT_TRUE(what.empty() || what.find("more bytes in use than") != std::string::npos) << what;
        if (!what.empty()) return true;
      }
      return false;
    };
    EXPECT_FALSE(found_in(plan)) << "seed " << seed;
    for (size_t i = 0; i < all.size(); ++i) found += found_in(Without(plan, {all[i]}));
    guards += static_cast<int>(all.size());
    plans += !all.empty();
    found_plans += !all.empty() && found_in(Without(plan, all));
  }
  EXPECT_GT(guards, 10);
  // A single guard may be one of several that say the same.
  EXPECT_GT(found, guards / 2) << guards;
  EXPECT_GE(found_plans, plans * 9 / 10) << plans;
}

// A register of a pass that takes a third panel while the two before it are still read, or copied: where
// copies back are slow all registers are full, and there is one panel too many.
TEST_F(DeviceMutationsTest, ASlotThatIsUsedAgainBeforeItsReaderIsDoneIsFound) {
  constexpr int64_t kRows = 2048, kNs = 1'000'000;
  CaseOnDevice some(/*seed=*/0, kRows, /*most_ranks=*/1);
  some.graph = ExpOfPanels(kRows);
  some.where = {{"X", Distribution::One()}};
  some.live_in[0] = {{"X", some.live_in[0].at("X0")}};
  const Plan plan = some.PlanOf(scheduler::DeviceOptions{.device = kGpu}, kGranuleOfExp);
  const SimulatedDeviceOptions options{.times = CommandTimes{kNs, kNs, 20 * kNs},
                                       .planned_bytes = scheduler::PeakOnDevice(plan, kGpu)};
  EXPECT_EQ(FoundBy(plan, some, {}, options, {}), "");
  int mutants = 0;
  for (size_t i = 0; i < plan.registers.size(); ++i) {
    if (plan.registers[i].device.IsHost()) continue;
    Plan mutant = plan;
    ++mutant.registers[i].slots;
    const std::string found = FoundBy(mutant, some, {}, options, {});
    EXPECT_NE(found.find("more bytes in use than"), std::string::npos) << "register " << i << ": " << found;
    ++mutants;
  }
  EXPECT_EQ(mutants, 3);
}

}  // namespace
}  // namespace heddle::testing_support
