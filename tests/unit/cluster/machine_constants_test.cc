// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/machine_constants.h"

#include <gtest/gtest.h>

#include "cluster/executor/executor_messages.h"
#include "cluster/master/master_wire.h"
#include "core/environment/clock.h"
#include "core/memory/block_pool.h"
#include "core/memory/memory_budget.h"
#include "engine/blocks/block_compiler.h"
#include "engine/control/background_measurement.h"
#include "engine/session/statistics.h"
#include "tests/support/process.h"
#include "tests/unit/engine/script_runner.h"

namespace heddle::cluster {
namespace {

using ops::MachineConstants;
using testing_support::ReadText;
using testing_support::TemporaryFolder;
using testing_support::WriteText;

// No number of it is short in decimal.
MachineConstants Odd() {
  MachineConstants constants = ops::BuiltInConstants(2);
  constants.read_bytes_per_ns = 100.0 / 3;
  constants.write_bytes_per_ns = 100.0 / 7;
  constants.work_per_ns = 10.0 / 9;
  constants.operator_ns = 1000.0 / 3;
  constants.links = {.bytes_per_ns = 10.0 / 7, .message_ns = 1e5 / 3, .measured = true};
  constants.measured = true;
  return constants;
}

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename());
  return names;
}

TEST(MachineConstantsTest, ALineKeepsEveryBit) {
  for (const MachineConstants& constants : {Odd(), ops::BuiltInConstants(1)})
    EXPECT_EQ(engine::DecodeConstants(engine::EncodeConstants(constants)), constants)
        << engine::EncodeConstants(constants);
}

TEST(MachineConstantsTest, LinesThatNobodyWroteAreRefused) {
  const std::string good = engine::EncodeConstants(Odd());
  for (size_t size = 0; size < good.size(); ++size) {
    // A shorter number may still be one; a shorter line of fewer fields is none.
    if (size < good.find("message ") + 8) {
      EXPECT_EQ(engine::DecodeConstants(good.substr(0, size)), std::nullopt) << size;
    }
  }
  const std::string links = " links built-in send 1 message 50000";
  ASSERT_TRUE(engine::DecodeConstants("measured read 10 write 10 compute 10 operator 3000" + links));
  for (const std::string& bad :
       {good + " ", good + "\n", " " + good, "guessed" + good.substr(8),
        "measured read nan write 10 compute 10 operator 3000" + links,
        "measured read inf write 10 compute 10 operator 3000" + links,
        "measured read -10 write 10 compute 10 operator 3000" + links,
        "measured read 1e10 write 1e10 compute 1e10 operator 3e-06" + links,
        "measured read 0 write 10 compute 10 operator 3000" + links,
        "measured read 10 write 10 compute 10 operator 1e10" + links,
        "measured write 10 read 10 compute 10 operator 3000" + links,
        std::string("measured read 10 write 10 compute 10 operator 3000"),
        std::string("measured read 10 write 10 compute 10 operator 3000 links measured send 0 message 1"),
        std::string("measured read 10 write 10 compute 10 operator 3000 links measured send 1 message -1"),
        std::string("measured read 10 write 10 compute 10 operator 3000 links guessed send 1 message 1")})
    EXPECT_EQ(engine::DecodeConstants(bad), std::nullopt) << bad;
  EXPECT_EQ(engine::DecodeConstants(engine::EncodeConstants(MachineConstants())), std::nullopt)
      << "what nobody has set";
}

TEST(MachineConstantsTest, TheKeyTellsThreadsApart) {
  EXPECT_EQ(engine::MachineKey(2), engine::MachineKey(2));
  EXPECT_NE(engine::MachineKey(2), engine::MachineKey(12));
}

TEST(ConstantsCacheTest, WhatIsStoredIsFoundUnderItsKeyOnly) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a/machine";
  const engine::ConstantsCache cache(path);
  EXPECT_EQ(cache.Find("key"), std::nullopt);
  EXPECT_FALSE(std::filesystem::exists(path)) << "looking makes no folder";
  cache.Store("key", Odd());
  EXPECT_EQ(engine::ConstantsCache(path).Find("key"), Odd());
  EXPECT_EQ(cache.Find("another processor"), std::nullopt);
  cache.Store("key", ops::BuiltInConstants(1));
  EXPECT_EQ(cache.Find("key"), ops::BuiltInConstants(1)) << "replaced";
  EXPECT_EQ(FilesIn(path).size(), 1u) << "nothing else is left";
}

TEST(ConstantsCacheTest, RatesOfLinksAreKeptByTheirKey) {
  const TemporaryFolder folder;
  const engine::ConstantsCache cache(folder.path() + "/machine");
  cache.StoreLinks("two workers", Odd().links);
  EXPECT_EQ(cache.FindLinks("two workers"), Odd().links);
  EXPECT_EQ(cache.FindLinks("three workers"), std::nullopt);
  EXPECT_EQ(cache.Find("two workers"), std::nullopt) << "they are no constants";
}

TEST(MachineConstantsTest, LinksThatWereMeasuredStayWhereNothingElseWas) {
  MachineConstants constants;
  constants.links = Odd().links;
  EXPECT_EQ(ops::OrBuiltIn(constants, 2).links, Odd().links);
  EXPECT_EQ(ops::OrBuiltIn(constants, 2).read_bytes_per_ns, ops::BuiltInConstants(2).read_bytes_per_ns);
  constants.links.message_ns = -1;
  EXPECT_EQ(ops::OrBuiltIn(constants, 2), ops::BuiltInConstants(2));
  EXPECT_EQ(ops::ToText(ops::LinkRates{.bytes_per_ns = 8, .message_ns = 32768, .measured = true}),
            "measured: 32.8 us a message, 8 GB/s");
}

TEST(ConstantsCacheTest, DamagedAndForeignFilesAreAsGoodAsAbsent) {
  const TemporaryFolder folder;
  const engine::ConstantsCache cache(folder.path());
  cache.Store("key", Odd());
  const std::string path = cache.PathOf("key");
  const std::string good = ReadText(path);
  for (size_t size = 0; size < good.size(); ++size) {
    WriteText(path, good.substr(0, size));
    EXPECT_EQ(cache.Find("key"), std::nullopt) << size;
  }
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x40);
    WriteText(path, bad);
    EXPECT_EQ(cache.Find("key"), std::nullopt) << at;
  }
  WriteText(path, std::string(1 << 20, 'x'));
  EXPECT_EQ(cache.Find("key"), std::nullopt);
  // The file of another key under this name: as when two keys have the same hash.
  cache.Store("other", Odd());
  std::filesystem::rename(cache.PathOf("other"), path);
  EXPECT_EQ(cache.Find("key"), std::nullopt);
  cache.Store("key", Odd());
  EXPECT_EQ(cache.Find("key"), Odd()) << "written anew";
  std::filesystem::rename(path, folder.path() + "/real");
  std::filesystem::create_symlink(folder.path() + "/real", path);
  EXPECT_EQ(cache.Find("key"), std::nullopt) << "a link may lead anywhere";
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_EQ(cache.Find("key"), std::nullopt);
}

TEST(ConstantsCacheTest, WithoutAFolderNothingIsFoundOrStored) {
  const TemporaryFolder folder;
  WriteText(folder.path() + "/file", "");
  for (const std::string& path : {std::string(), folder.path() + "/file/machine"}) {
    const engine::ConstantsCache cache(path);
    EXPECT_FALSE(cache.IsUsable());
    cache.Store("key", Odd());
    EXPECT_EQ(cache.Find("key"), std::nullopt);
  }
  EXPECT_EQ(FilesIn(folder.path()), std::vector<std::string>{"file"});
  EXPECT_EQ(engine::ConstantsCache::DefaultFolder(), HEDDLE_BINARY_DIR "/cache-of-tests/heddle/machine");
}

// Moves a clock by set times instead of working.
class FakeWork : public engine::ProbeWork {
 public:
  explicit FakeWork(VirtualClock& clock) : clock_(clock) {}
  double Write() override { return Do(write_ns); }
  double Read() override { return Do(read_ns); }
  double Compute() override { return Do(compute_ns); }
  int64_t ProcessorNs() override { return processor_ns_; }

  std::vector<int64_t> write_ns, read_ns, compute_ns;  // call by call; the last for all that follow
  std::vector<double> processors = {2};                // that this process has, call by call
  int calls = 0;

 private:
  double Do(std::vector<int64_t>& times) {
    ++calls;
    clock_.Advance(times.front());
    processor_ns_ += static_cast<int64_t>(static_cast<double>(times.front()) * processors.front());
    if (processors.size() > 1) processors.erase(processors.begin());
    if (times.size() > 1) times.erase(times.begin());
    return 30'000'000;
  }
  VirtualClock& clock_;
  int64_t processor_ns_ = 0;
};

TEST(MeasureMachineTest, TheFastestRoundCountsAndTheFirstWriteDoesNot) {
  VirtualClock clock;
  FakeWork work(clock);
  work.write_ns = {1, 3'000'000, 2'000'000, 4'000'000};  // the first call touches the pages
  work.read_ns = {1'500'000, 1'000'000, 1'500'000};
  work.compute_ns = {3'700'000, 3'800'000};
  const auto measured = engine::MeasureMachine(work, 2, clock);
  ASSERT_TRUE(measured.has_value());
  MachineConstants expected = ops::BuiltInConstants(2);
  expected.write_bytes_per_ns = 15;
  expected.read_bytes_per_ns = 30;
  expected.work_per_ns = 8.1;  // of 8.108
  expected.measured = true;
  EXPECT_EQ(*measured, expected);
}

TEST(MeasureMachineTest, ASlowMachineIsAskedOnce) {
  VirtualClock clock;
  FakeWork work(clock);
  work.write_ns = {1'000'000, 60'000'000};
  work.read_ns = work.compute_ns = {60'000'000};
  const auto measured = engine::MeasureMachine(work, 2, clock);
  ASSERT_TRUE(measured.has_value());
  EXPECT_EQ(measured->read_bytes_per_ns, 0.5);
  EXPECT_EQ(work.calls, 4);
}

TEST(MeasureMachineTest, RoundsOnABusyMachineDoNotCount) {
  VirtualClock clock;
  FakeWork work(clock);
  work.write_ns = work.compute_ns = {1'000'000};
  work.read_ns = {1'000'000, 2'000'000};
  work.processors = {2, 1, 1, 1, 2};  // others have a half while the first round runs
  const auto measured = engine::MeasureMachine(work, 2, clock);
  ASSERT_TRUE(measured.has_value());
  EXPECT_EQ(measured->read_bytes_per_ns, 15);
  work.processors = {1};
  EXPECT_EQ(engine::MeasureMachine(work, 2, clock), std::nullopt) << "a later run may find the machine idle";
  EXPECT_TRUE(engine::MeasureMachine(work, 1, clock).has_value()) << "one thread had all it needs";
}

TEST(MeasureMachineTest, WhatCannotBeTrueIsNothing) {
  VirtualClock clock;
  FakeWork work(clock);
  work.write_ns = work.compute_ns = {1'000'000};
  work.read_ns = {0};  // a clock that stands still
  EXPECT_EQ(engine::MeasureMachine(work, 2, clock), std::nullopt);
}

// Other tests may have the processors, so that there may be no measurement; the work itself is done.
TEST(MeasureMachineTest, TheRealWorkTellsItsAmounts) {
  const std::unique_ptr<engine::ProbeWork> work = engine::MakeProbeWork(2);
  ASSERT_NE(work, nullptr);
  const int64_t begin_ns = work->ProcessorNs();
  EXPECT_EQ(work->Write(), 128 << 20);
  EXPECT_EQ(work->Read(), 128 << 20);
  EXPECT_EQ(work->Compute(), 2.0 * 4 * 4096 * 512);
  EXPECT_GT(work->ProcessorNs(), begin_ns);
  const auto measured = engine::MeasureMachine(*work, 2, SystemClock());
  EXPECT_TRUE(!measured || (measured->measured && ArePlausible(*measured)));
}

TEST(MeasureMachineTest, ABudgetWithoutRoomIsRespected) {
  MemoryBudget& budget = MemoryBudget::Process();
  const int64_t limit = budget.limit();
  BlockPool::Process().Trim();
  budget.SetLimit(1);
  const std::unique_ptr<engine::ProbeWork> work = engine::MakeProbeWork(1);
  budget.SetLimit(limit);
  EXPECT_EQ(work, nullptr);
}

class BackgroundMeasurementTest : public testing::Test {
 protected:
  // True when it was started; it has ended then.
  bool RunBehind(int64_t bytes, const std::string& folder) {
    engine::SessionStatistics job;
    job.bytes_moved = bytes;
    engine::BackgroundMeasurement measurement(
        engine::ConstantsCache(folder), [this](int) { return Work(); }, &clock_);
    return measurement.StartBehind(job, kThreads);
  }
  std::unique_ptr<engine::ProbeWork> Work() {
    ++made_;
    auto work = std::make_unique<FakeWork>(clock_);
    work->processors = {kThreads};
    work->write_ns = work->read_ns = work->compute_ns = {1'000'000};
    return has_memory_ ? std::move(work) : nullptr;
  }
  std::optional<MachineConstants> Found() {
    return engine::ConstantsCache(folder_.path()).Find(engine::MachineKey(kThreads));
  }

  static constexpr int kThreads = 3;
  TemporaryFolder folder_;
  VirtualClock clock_;
  int made_ = 0;
  bool has_memory_ = true;
};

TEST_F(BackgroundMeasurementTest, OnceBehindAJobThatMovedMoreThanAGigabyte) {
  EXPECT_FALSE(RunBehind(1'000'000'000, folder_.path()));
  EXPECT_EQ(Found(), std::nullopt);
  EXPECT_TRUE(RunBehind(1'000'000'001, folder_.path()));
  ASSERT_TRUE(Found().has_value());
  EXPECT_EQ(Found()->read_bytes_per_ns, 30);
  EXPECT_FALSE(RunBehind(1'000'000'001, folder_.path())) << "it is known now";
  EXPECT_EQ(made_, 1);
}

TEST_F(BackgroundMeasurementTest, WhatCannotBeKeptOrMeasuredIsLeftAlone) {
  EXPECT_FALSE(RunBehind(int64_t{1} << 40, ""));
  EXPECT_EQ(made_, 0);
  has_memory_ = false;
  EXPECT_TRUE(RunBehind(int64_t{1} << 40, folder_.path()));
  EXPECT_EQ(Found(), std::nullopt);
}

TEST(ConstantsOfAJobTest, TravelInItsHeader) {
  LauncherMessage message;
  message.start.emplace().options.constants = Odd();
  const Result<LauncherMessage> there = ParseLauncherMessage(ToLine(message));
  ASSERT_TRUE(there.ok());
  EXPECT_EQ(there->start->options.constants, Odd());
  message.start->options.constants = {};
  EXPECT_EQ(ParseLauncherMessage(ToLine(message))->start->options.constants, MachineConstants());

  SubmitOptions submitted;
  EXPECT_EQ(FromProto(submitted).constants, MachineConstants());
  submitted.set_constants(engine::EncodeConstants(Odd()));
  EXPECT_EQ(FromProto(submitted).constants, Odd());
  submitted.set_constants("measured read nan");
  EXPECT_EQ(FromProto(submitted).constants, MachineConstants()) << "the master takes its own";
}

TEST(ConstantsOfAJobTest, ComeBackInStatistics) {
  engine::SessionStatistics statistics;
  statistics.constants = Odd();
  statistics.bytes_moved = int64_t{1} << 50;
  statistics.recursions = {"f, nodes with 2 calls: ahead: nothing; a level: 1 products"};
  statistics.recursion_forms = {{"f by levels", 3}};
  const Result<engine::SessionStatistics> back = engine::ParseStatistics(ToJson(statistics));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->constants, Odd());
  EXPECT_EQ(back->bytes_moved, int64_t{1} << 50);
  EXPECT_EQ(back->recursions, statistics.recursions);
  EXPECT_EQ(back->recursion_forms, statistics.recursion_forms);
  EXPECT_NE(engine::ToText({statistics, statistics})
                .find("Recursion " + statistics.recursions[0] + "\nRecursion f by levels: 6 times\n"),
            std::string::npos);
  // The rates of the links are told once, where there are links.
  const std::string constants =
      "Plans chosen by measured constants: read 33.3 GB/s, write 14.3 GB/s, compute 1.11 G/s, "
      "0.333 us an operator\n";
  const std::string links = "Links between workers, " + ops::ToText(Odd().links) + "\n";
  statistics.ranks = 1;
  const std::string of_one = engine::ToText({statistics});
  EXPECT_NE(of_one.find(constants + "Operator"), std::string::npos) << of_one;
  statistics.ranks = 2;
  const std::string of_two = engine::ToText({statistics, statistics});
  EXPECT_NE(of_two.find(constants + links + "Operator"), std::string::npos) << of_two;
}

TEST(ConstantsOfAJobTest, ASessionUsesThoseOfItsOptionsOrTheBuiltInOnes) {
  engine::SessionOptions options;
  options.threads = 2;
  EXPECT_EQ(engine::RunScript("print(1)", options).statistics[0].constants, ops::BuiltInConstants(2));
  options.constants = Odd();
  EXPECT_EQ(engine::RunScript("print(1)", options).statistics[0].constants, Odd());
}

TEST(ConstantsOfAJobTest, PlansOfOtherConstantsHaveOtherKeys) {
  engine::SessionOptions options;
  const uint64_t history = engine::BlockCompiler(options, nullptr, &SystemClock()).FirstHistory(3);
  options.constants = Odd();
  EXPECT_NE(engine::BlockCompiler(options, nullptr, &SystemClock()).FirstHistory(3), history);
  EXPECT_EQ(engine::BlockCompiler(options, nullptr, &SystemClock()).FirstHistory(3),
            engine::BlockCompiler(options, nullptr, &SystemClock()).FirstHistory(3));
}

// Reads 80 kB and writes 80 kB, fused or not; then reads 80 kB.
TEST(BytesMovedTest, CountsWhatOperatorsReadAndWrite) {
  engine::SessionOptions options;
  for (const char* fusion : {"off", "cost"}) {
    options.fusion = fusion;
    const auto moved = [&](int rounds) {
      const engine::ScriptOutcome outcome =
          engine::RunScript("X = rand(rows=1000, cols=10, seed=1)\nfor (i in 1:" + std::to_string(rounds) +
                                ") {\n  X = X + i\n}\nprint(sum(X))",
                            options);
      EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
      return outcome.statistics[0].bytes_moved;
    };
    EXPECT_EQ(moved(30) - moved(10), 20 * 160'000) << fusion;
    EXPECT_EQ(moved(1), 80'000 + 160'000 + 80'000) << fusion;
  }
}

// Batch norm is one operator of phases; some of its members are fused, others are not.
TEST(BytesMovedTest, CellsOfFloatsAreHalfAsLarge) {
  engine::SessionOptions options;
  const auto moved = [&](ElementType type) {
    options.element_type = type;
    const engine::ScriptOutcome outcome = engine::RunScript(
        "X = rand(rows=5000, cols=100, seed=1)\nC = X - colMeans(X)\nprint(sum(C / sqrt(colMeans(C^2) + 1)))",
        options);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
    return outcome.statistics[0].bytes_moved;
  };
  EXPECT_EQ(moved(ElementType::kFloat64), 2 * moved(ElementType::kFloat32));
}

// Three operators on matrices a round, or one that is fused; numbers are none.
TEST(MatrixOperatorsTest, CountsAFusedOperatorOnce) {
  engine::SessionOptions options;
  for (const auto& [fusion, of_round] : {std::pair("off", 3), std::pair("cost", 1)}) {
    options.fusion = fusion;
    const auto operators = [&](int rounds) {
      const engine::ScriptOutcome outcome =
          engine::RunScript("X = rand(rows=100000, cols=10, seed=1)\nfor (i in 1:" + std::to_string(rounds) +
                                ") {\n  X = abs(X + i * 2) * i\n}\nprint(sum(X) + 1)",
                            options);
      EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
      return outcome.statistics[0].matrix_operators;
    };
    EXPECT_EQ(operators(30) - operators(10), 20 * of_round) << fusion;
  }
}

}  // namespace
}  // namespace heddle::cluster
