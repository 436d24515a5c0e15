// SPDX-License-Identifier: Apache-2.0
// Scripts print the same bytes where a device computes what it can (docs/devices.md). On machines without an
// OpenCL device (Debian: pocl-opencl-icd) these tests are skipped. HEDDLE_ALL_PLANS=1 takes every script, in
// more ways; HEDDLE_DEVICE_SEED=N HEDDLE_DEVICE_SEEDS=M are the seeds of random placements (tests/README.md).
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <link.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <tuple>

#include "tests/scripts/script_case.h"
#include "tests/support/all_plans.h"

namespace heddle {
namespace {

using testing_support::Finished;

Finished Heddle(std::vector<std::string> words) {
  words.insert(words.begin(), HEDDLE_BINARY_DIR "/heddle");
  return testing_support::RunProcess(words, testing_support::TemporaryFolder().path());
}

// Whether the first device of this machine is one that Heddle uses.
bool HasDevice() {
  static const bool has = Heddle({"run", "--devices", "opencl:0", "-e", "print(1)"}).errors.empty();
  return has;
}

// A number from the environment.
uint64_t Setting(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

// What stands before a way of running whose device says that it is a GPU (support/opencl_gpu_layer.c):
// kernels have work-groups of many work-items then.
constexpr std::string_view kGpu = "gpu ";

// Of `random` a random half of the operators is the processor's, another one for each seed.
std::vector<std::string> Variants() {
  if (!testing_support::RunsAllPlans())
    return {"run --devices opencl:0", "gpu run --devices opencl:0",
            "sim --workers 3 --min-distributed-bytes 0 --devices opencl:0/random:1 --fusion all"};
  std::vector<std::string> variants = {
      "run --devices opencl:0",
      "gpu run --devices opencl:0",
      "gpu run --devices opencl:0 --fusion all",
      "run --devices opencl:0/cost",
      "sim --workers 3 --devices opencl:0",
      "sim --workers 2 --min-distributed-bytes 0 --devices opencl:0 --fusion all"};
  const uint64_t first = Setting("HEDDLE_DEVICE_SEED", 1), seeds = Setting("HEDDLE_DEVICE_SEEDS", 3);
  constexpr const char* kFusion[] = {"", " --fusion all", " --fusion off", " --fusion random:5"};
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    const std::string rest = fmt::format(" --devices opencl:0/random:{}{}", seed, kFusion[seed % 4]);
    variants.push_back("run" + rest);
    variants.push_back("sim --workers 3 --min-distributed-bytes 0" + rest);
  }
  return variants;
}

// A script and how it runs: one test each, so that shards of GoogleTest are about as long as each other.
using DeviceCase = std::tuple<std::string, std::string>;

// Cells, rows, reductions, stitches, loops and functions: compiling a kernel takes longer than all else.
std::vector<std::string> Scripts() {
  const std::set<std::string> sample = {"csr_unions", "example_l2svm", "several_results"};
  std::vector<std::string> paths;
  for (const std::string& path : ScriptCases())
    if (testing_support::RunsAllPlans() || sample.contains(std::filesystem::path(path).stem().string()))
      paths.push_back(path);
  return paths;
}

class DeviceScripts : public testing::TestWithParam<DeviceCase> {
 protected:
  void SetUp() override {
    if (!HasDevice()) GTEST_SKIP() << "this machine has no OpenCL device";
  }
};

TEST_P(DeviceScripts, PrintTheSameBytes) {
  const auto& [path, variant] = GetParam();
  SCOPED_TRACE(variant);
  const std::string expected =
      testing_support::ReadText(std::filesystem::path(path).replace_extension(".expected"));
  const bool is_gpu = variant.starts_with(kGpu);
  if (is_gpu) setenv("OPENCL_LAYERS", HEDDLE_BINARY_DIR "/libheddle_opencl_gpu_layer.so", 1);
  const Finished finished = RunCase(is_gpu ? variant.substr(kGpu.size()) : variant, path);
  unsetenv("OPENCL_LAYERS");
  EXPECT_EQ(finished.code, 0) << finished.errors;
  EXPECT_EQ(finished.output, expected);
  EXPECT_EQ(finished.errors.find("in place of a device"), std::string::npos) << finished.errors;
}

std::string NameOfCase(const testing::TestParamInfo<DeviceCase>& info) {
  std::string name = std::filesystem::path(std::get<0>(info.param)).stem().string() + "_";
  for (const char letter : std::get<1>(info.param))
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0) name += letter;
  return name;
}

INSTANTIATE_TEST_SUITE_P(Scripts, DeviceScripts,
                         testing::Combine(testing::ValuesIn(Scripts()), testing::ValuesIn(Variants())),
                         NameOfCase);

// Scripts of benchmarks that write what they compute of inputs: X, y and out. tests/scripts/cases has the
// others of bench, and those of examples.
std::vector<std::string> BenchScripts() {
  const std::set<std::string> sample = {"cross_product", "pca"};
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(HEDDLE_SOURCE_DIR "/bench/scripts/memory"))
    if (entry.path().extension() == ".dml" &&
        (testing_support::RunsAllPlans() || sample.contains(entry.path().stem().string())))
      paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Else the ways of a GPU would be those of a processor.
TEST(DevicesTest, TheLayerOfTestsMakesGpus) {
  if (!HasDevice()) GTEST_SKIP() << "this machine has no OpenCL device";
  const std::vector<std::string> words = {
      "explain", "--level", "memory", "--devices", "opencl:0", "-e",
      "X = rand(rows=2000, cols=1500, seed=1); print(sum(exp(X)))"};
  const Finished processor = Heddle(words);
  setenv("OPENCL_LAYERS", HEDDLE_BINARY_DIR "/libheddle_opencl_gpu_layer.so", 1);
  const Finished gpu = Heddle(words);
  unsetenv("OPENCL_LAYERS");
  EXPECT_EQ(processor.code, 0) << processor.errors;
  EXPECT_EQ(gpu.code, 0) << gpu.errors;
  // Of a device of the host the plan counts what is there as memory of the process.
  EXPECT_NE(gpu.output, processor.output);
}

class DeviceBenchScripts : public testing::TestWithParam<std::string> {};

TEST_P(DeviceBenchScripts, WriteTheSameBytes) {
  if (!HasDevice()) GTEST_SKIP() << "this machine has no OpenCL device";
  const testing_support::TemporaryFolder folder;
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {HEDDLE_BINARY_DIR "/heddle", "run"});
    const Finished finished = testing_support::RunProcess(words, folder.path());
    EXPECT_EQ(finished.code, 0) << finished.errors;
    EXPECT_EQ(finished.errors, "");
  };
  run({"-e",
       "X = rand(rows=1203, cols=17, min=-1, max=1, seed=1)\n"
       "y = sign(X %*% rand(rows=17, cols=1, min=-1, max=1, seed=2))\n"
       "write(X, 'X', format='binary'); write(y, 'y', format='binary')"});
  run({GetParam(), "-nvargs", "X=X", "y=y", "out=here"});
  run({"--devices", "opencl:0", GetParam(), "-nvargs", "X=X", "y=y", "out=there"});
  const std::string here = testing_support::ReadText(folder.path() + "/here");
  EXPECT_FALSE(here.empty());
  EXPECT_TRUE(here == testing_support::ReadText(folder.path() + "/there"));
}

INSTANTIATE_TEST_SUITE_P(Scripts, DeviceBenchScripts, testing::ValuesIn(BenchScripts()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return std::filesystem::path(info.param).stem().string();
                         });

// A machine without the device: the processor computes, and says so.
TEST(DevicesTest, AMissingDeviceIsTheProcessor) {
  const Finished finished =
      Heddle({"run", "--devices", "opencl:99", "-e", "print(sum(rand(rows=300, cols=30, seed=1)))"});
  EXPECT_EQ(finished.code, 0) << finished.errors;
  EXPECT_EQ(finished.output, Heddle({"run", "-e", "print(sum(rand(rows=300, cols=30, seed=1)))"}).output);
  const std::string why = HasDevice() ? "there is no opencl:99, the last device is opencl:" : "";
  EXPECT_NE(finished.errors.find("--devices opencl:99: " + why), std::string::npos) << finished.errors;
  EXPECT_NE(finished.errors.find("; the processor computes ('heddle devices' tells more)"), std::string::npos)
      << finished.errors;
  // Once, however many workers there are.
  const Finished several = Heddle({"sim", "--workers", "3", "--devices", "opencl:99", "-e", "print(1)"});
  EXPECT_EQ(several.output, "1\n");
  EXPECT_EQ(std::count(several.errors.begin(), several.errors.end(), '\n'), 1) << several.errors;
}

// A compiler that refuses the test of the device's arithmetic is not asked again for each block.
TEST(DevicesTest, ACompilerThatRefusesEverythingIsToldOfOnce) {
  if (!HasDevice()) GTEST_SKIP() << "this machine has no OpenCL device";
  const auto run = [](std::vector<std::string> words) {
    const char* const first[] = {"/usr/bin/env", "POCL_EXTRA_BUILD_FLAGS=-no-such-option",
                                 HEDDLE_BINARY_DIR "/heddle"};
    words.insert(words.begin(), std::begin(first), std::end(first));
    return testing_support::RunProcess(words, testing_support::TemporaryFolder().path());
  };
  if (run({"devices"}).output.find("not used: the compiler of the device ") == std::string::npos)
    GTEST_SKIP() << "only POCL takes options from the environment";
  const std::string script =
      "X = rand(rows=3, cols=3, seed=1)\n"
      "for (i in 1:3) { X = exp(-X); print(sum(X)) }";
  const Finished there = run({"run", "--devices", "opencl:0", "-e", script});
  EXPECT_EQ(there.code, 0) << there.errors;
  EXPECT_EQ(there.output, Heddle({"run", "-e", script}).output);
  EXPECT_EQ(std::count(there.errors.begin(), there.errors.end(), '\n'), 1) << there.errors;
  EXPECT_NE(there.errors.find("; the processor computes ('heddle devices' tells more)"), std::string::npos)
      << there.errors;
}

// A loop on a device reads what it had copied before, in blocks of its own, and leaves its values there.
TEST(DevicesTest, VariablesStayOnADevice) {
  if (!HasDevice()) GTEST_SKIP() << "this machine has no OpenCL device";
  const std::string script =
      "X = rand(rows=3000, cols=10, seed=1); w = matrix(0.5, 10, 1); L = list(w)\n"
      "for (i in 1:4) { w = w - 0.0001 * (t(X) %*% (X %*% w)); if (i == 2) L = append(L, w) }\n"
      "X[2, ] = t(w); print(sum(X)); print(sum(as.matrix(L[2]))); print(toString(w))";
  const Finished here = Heddle({"run", "-e", script});
  const Finished there = Heddle({"run", "--devices", "opencl:0", "-stats", "-e", script});
  EXPECT_EQ(there.code, 0) << there.errors;
  EXPECT_EQ(there.output.substr(0, here.output.size()), here.output);
  // X once, with its 3000 rows, and few of w: not in each round.
  const std::string all = there.output + there.errors;
  const size_t line = all.find("\nvariable.transfer ");
  ASSERT_NE(line, std::string::npos) << all;
  long long count = 0, rows = 0;
  double ms = 0;
  ASSERT_EQ(std::sscanf(all.c_str() + line, "\nvariable.transfer %lld %lf %lld", &count, &ms, &rows), 3)
      << all;
  EXPECT_GE(rows, 3000) << all;
  EXPECT_LT(rows, 3200) << all;
}

// What a device adds up is read there by the next operator: passes over the same rows are one operator of
// phases, and its scalars are no copies.
TEST(DevicesTest, PhasesFollowEachOtherOnADevice) {
  if (!HasDevice()) GTEST_SKIP() << "this machine has no OpenCL device";
  const std::string script =
      "X = rand(rows=3000, cols=10, seed=1); w = colSums(X)\n"
      "for (i in 1:3) { Y = X / sum(X); Z = (Y - colMeans(Y)) / (sd(Y) + 1)\n"
      "  X = Z * (1 / sqrt(var(Z))) + w }\n"
      "print(sum(X)); print(toString(colMins(X)))";
  const Finished here = Heddle({"run", "-e", script});
  EXPECT_EQ(here.code, 0) << here.errors;
  for (const char* const devices : {"opencl:0", "opencl:0/random:1", "opencl:0/random:2"}) {
    const Finished there = Heddle({"run", "--devices", devices, "-e", script});
    EXPECT_EQ(there.code, 0) << there.errors;
    EXPECT_EQ(there.output, here.output) << devices;
    EXPECT_EQ(there.errors.find("in place of a device"), std::string::npos) << there.errors;
  }
  const Finished explained =
      Heddle({"explain", "--level", "placement", "--devices", "opencl:0", "-e", script});
  EXPECT_NE(explained.output.find("phased 3000x10: on opencl:0"), std::string::npos) << explained.output;
  EXPECT_EQ(explained.output.find("no kernel: sd"), std::string::npos) << explained.output;
}

// A driver whose memory is the process's asks the heap for it: what is refused there would end the process.
TEST(DevicesTest, MemoryThatADriverNeedsIsNotRefusedToIt) {
  if (!HasDevice()) GTEST_SKIP() << "this machine has no OpenCL device";
  const std::string script =
      "X = rand(rows=20000, cols=200, seed=1); w = matrix(0, rows=200, cols=1)\n"
      "for (i in 1:3) w = w + 0.00001 * (t(X) %*% (1 - X %*% w))\n"
      "print(sum(w))";
  const Finished here = Heddle({"run", "-e", script});
  EXPECT_EQ(here.code, 0) << here.errors;
  const Finished there = Heddle({"run", "--memory", "72M", "--devices", "opencl:0", "-e", script});
  // Its compiler, where the kernels are new, may take so much that there is no room for the values.
  constexpr int kNoMemory = 5;
  EXPECT_TRUE(there.code == 0 || there.code == kNoMemory) << there.code << " " << there.errors;
  if (there.code == 0) {
    EXPECT_EQ(there.output, here.output);
  }
}

TEST(DevicesTest, ExplainTellsWhereOperatorsRun) {
  const Finished finished =
      Heddle({"explain", "--level", "placement", "--devices", "opencl:0", "-e",
              "X = rand(rows=3000, cols=10, seed=1)\nprint(sum(exp(X)))\nprint(toString(t(X)))"});
  EXPECT_EQ(finished.code, 0) << finished.errors;
  if (HasDevice())
    for (const char* const text : {"line 1 rand 3000x10: on the processor, no kernel: rand\n",
                                   "copies rand 3000x10 to opencl:0\n", ": on opencl:0\n"})
      EXPECT_NE(finished.output.find(text), std::string::npos) << finished.output;
  else
    EXPECT_EQ(finished.output, "the processor computes everything\n");
}

// By cost it tells the times of both sides, or what makes the processor faster.
TEST(DevicesTest, ExplainTellsWhatPlacementGoesBy) {
  if (!HasDevice()) GTEST_SKIP() << "this machine has no OpenCL device";
  const Finished finished = Heddle({"explain", "--level", "placement", "--devices", "opencl:0/cost", "-e",
                                    "X = rand(rows=3000, cols=10, seed=1)\nprint(sum(exp(X)))"});
  EXPECT_EQ(finished.code, 0) << finished.errors;
  const std::regex sum(R"(  line 2 [a-z ]*sum: (on opencl:0 \([\d.]+ [mu]s, on the processor [\d.]+ [mu]s\)|)"
                       R"(on the processor, which is faster than copies( and opencl:0|, opencl:0 and )"
                       R"(compiling its kernel, [\d.]+ [mu]s))\n)");
  EXPECT_TRUE(std::regex_search(finished.output, sum)) << finished.output;
  EXPECT_NE(finished.output.find("  line 1 rand 3000x10: on the processor, no kernel: rand\n"),
            std::string::npos)
      << finished.output;
}

// What plans take of the memory of a device, and, where that is the memory of the processor, of the worker.
TEST(DevicesTest, ExplainTellsTheMemoryOfADevice) {
  if (!HasDevice()) GTEST_SKIP() << "this machine has no OpenCL device";
  // X has 16 MB, and all that is read of it is one operator.
  const std::string script = "X = rand(rows=20000, cols=100, seed=1)\nprint(sum(exp(X) + X))";
  const auto explained = [&](const std::vector<std::string>& words) {
    std::vector<std::string> all = {"explain", "--level", "memory", "-e", script};
    all.insert(all.begin() + 3, words.begin(), words.end());
    const Finished finished = Heddle(all);
    EXPECT_EQ(finished.code, 0) << finished.errors;
    return finished.output;
  };
  const auto values_of = [&](const std::string& place, const std::string& text) {
    std::smatch found;
    const std::regex values("  " + place + R"(: values ([\d.]+) MB)");
    EXPECT_TRUE(std::regex_search(text, found, values)) << text;
    return found.empty() ? 0 : std::stod(found[1]);
  };
  const std::string text = explained({"--devices", "opencl:0"});
  std::smatch found;
  const std::regex line(R"(  opencl:0: values [\d.]+ MB, and [\d.]+ [KM]?B that operators work with, (.*)\n)");
  ASSERT_TRUE(std::regex_search(text, found, line)) << text;
  EXPECT_GE(values_of("opencl:0", text), 16.0) << text;
  EXPECT_LT(values_of("opencl:0", text), 17.0) << text;
  const double here = values_of("worker 0", explained({})), beside = values_of("worker 0", text);
  if (found[1] != "among the values of the worker") {
    EXPECT_TRUE(std::string(found[1]).starts_with("of ")) << text;
    EXPECT_LE(beside, here) << text;
    return;
  }
  EXPECT_GE(beside, here + 15.9) << text;
  EXPECT_NE(text.find("\npeak: " + fmt::format("{:.1f}", beside) + " MB"), std::string::npos) << text;
  // Where X has room and its copy has none, both pass in panels.
  const std::string limited = explained({"--memory", "24M", "--devices", "opencl:0"});
  EXPECT_NE(limited.find(": streams in pass 1, "), std::string::npos) << limited;
  EXPECT_LT(values_of("worker 0", limited), 25.2) << limited;
  EXPECT_GT(values_of("opencl:0", limited), 0) << limited;
  EXPECT_EQ(explained({"--memory", "24M"}).find("streams"), std::string::npos);
  // A row is no panels: the processor computes alone.
  const Finished alone = Heddle({"explain", "--level", "memory", "--memory", "24M", "--devices", "opencl:0",
                                 "-e", "X = rand(rows=1, cols=2000000, seed=1)\nprint(sum(exp(X)))"});
  EXPECT_EQ(alone.code, 0) << alone.errors;
  EXPECT_EQ(alone.output.find("opencl:0"), std::string::npos) << alone.output;
  EXPECT_NE(alone.output.find("\npeak: 16.8 MB"), std::string::npos) << alone.output;
  const Finished ran = Heddle({"run", "--memory", "200M", "--devices", "opencl:0", "-e", script});
  EXPECT_EQ(ran.code, 0) << ran.errors;
  EXPECT_EQ(ran.output, Heddle({"run", "-e", script}).output);
}

TEST(DevicesTest, AreListed) {
  const Finished finished = Heddle({"devices"});
  EXPECT_EQ(finished.code, 0) << finished.errors;
  EXPECT_NE(finished.output.find(HasDevice() ? "a launch takes " : "no device beside the processor: "),
            std::string::npos)
      << finished.output;
}

// The machine has a loader and a driver, as containers do, and nothing that leads from one to the other.
TEST(DevicesTest, ADriverThatNoFileNamesIsToldOf) {
  if (!HasDevice()) GTEST_SKIP() << "this machine has no OpenCL device";
  const testing_support::TemporaryFolder folder;
  // Any library does.
  void* const library = dlopen("libz.so.1", RTLD_LAZY);
  link_map* map = nullptr;
  ASSERT_TRUE(library != nullptr && dlinfo(library, RTLD_DI_LINKMAP, &map) == 0);
  std::filesystem::create_directory(folder.path() + "/vendors");
  std::filesystem::copy_file(map->l_name, folder.path() + "/libnvidia-opencl.so.1");
  const std::vector<std::string> words = {"/usr/bin/env", "OCL_ICD_VENDORS=" + folder.path() + "/vendors",
                                          "LD_LIBRARY_PATH=" + folder.path(), HEDDLE_BINARY_DIR "/heddle",
                                          "devices"};
  const Finished finished = testing_support::RunProcess(words, folder.path());
  EXPECT_EQ(finished.code, 0) << finished.errors;
  EXPECT_EQ(finished.output,
            "no device beside the processor: OpenCL knows no device\n"
            "  NVIDIA's driver is installed, but no file in " +
                folder.path() + "/vendors names it: mkdir -p " + folder.path() +
                "/vendors && echo libnvidia-opencl.so.1 > " + folder.path() + "/vendors/nvidia.icd\n");
}

// deploy/device, short: what its JSON tells of kernels, products and scripts. One of these prints something
// else each time.
Finished Report(std::vector<std::string> words, const std::string& vendors = "/etc/OpenCL/vendors",
                const std::string& build = HEDDLE_BINARY_DIR) {
  const std::vector<std::string> first = {"/usr/bin/env", "OCL_ICD_VENDORS=" + vendors,
                                          HEDDLE_SOURCE_DIR "/deploy/device", "--no-build", "--build", build,
                                          "--out", "-"};
  words.insert(words.begin(), first.begin(), first.end());
  // It says nothing until it is through.
  return testing_support::RunProcess(words, testing_support::TemporaryFolder().path(), /*timeout_s=*/240);
}

TEST(DeviceReportTest, TellsWhatIsTheSameAndWhatIsNot) {
  if (!HasDevice()) GTEST_SKIP() << "this machine has no OpenCL device";
  const testing_support::TemporaryFolder folder;
  testing_support::WriteText(folder.path() + "/sums.dml",
                             "print(sum(exp(rand(rows=200, cols=20, seed=1))))\n");
  testing_support::WriteText(folder.path() + "/clock.dml", "print(time())\n");
  // In the place of a benchmark that takes long, one whose last line is cut.
  const std::string build = folder.path() + "/build", bench = build + "/heddle-bench";
  testing_support::WriteText(bench, R"(#!/bin/sh
printf '{"case":"X","device_ms":2,"host_ms":1}\n{"case'
)");
  std::filesystem::permissions(bench, std::filesystem::perms::owner_all);
  for (const char* const name : {"heddle", "tests"})
    std::filesystem::create_symlink(std::string(HEDDLE_BINARY_DIR "/") + name, build + "/" + name);
  const Finished finished = Report({"--kernels", "DeviceTest.ComputesAsIeee754HasIt", "--products", "100",
                                    folder.path() + "/sums.dml", folder.path() + "/clock.dml"},
                                   "/etc/OpenCL/vendors", build);
  EXPECT_EQ(finished.code, 1) << finished.errors;
  EXPECT_NE(finished.errors.find("FAILED: script clock"), std::string::npos) << finished.errors;
  const auto report = nlohmann::json::parse(finished.output);
  EXPECT_EQ(report["devices"][0]["device"], "opencl:0");
  EXPECT_GT(report["devices"][0]["fma_per_s"], 0);
  if (std::filesystem::exists(HEDDLE_BINARY_DIR "/tests/test_ops")) {
    EXPECT_EQ(report["kernels"]["tests"], 1);
  }
  EXPECT_EQ(report["expressions"].size(), 1u);
  EXPECT_EQ(report["expressions"][0]["device_ms"], 2);
  EXPECT_EQ(report["products"][0]["same"], true);
  EXPECT_GT(report["products"][0]["flop_per_s"], 0);
  const auto& sums = report["scripts"][0];
  EXPECT_EQ(sums["same"], true);
  ASSERT_EQ(sums["runs"].size(), 3u);
  for (const auto& run : sums["runs"]) EXPECT_GT(run["operators_on_device"], 0) << run;
  EXPECT_EQ(report["scripts"][1]["same"], false);
}

TEST(DeviceReportTest, SaysWhatWasLeftOut) {
  if (!HasDevice()) GTEST_SKIP() << "this machine has no OpenCL device";
  const Finished late = Report({"--parts", "scripts", "--seconds", "1", "example_l2svm"});
  EXPECT_EQ(late.code, 0) << late.errors;
  EXPECT_NE(late.errors.find("left out: 2, among them script example_l2svm (run)"), std::string::npos)
      << late.errors;
}

TEST(DeviceReportTest, SaysThatThereIsNoDevice) {
  const testing_support::TemporaryFolder folder;
  const Finished none = Report({}, folder.path());
  EXPECT_EQ(none.code, 3) << none.errors;
  EXPECT_NE(none.errors.find("deploy/device: no device opencl:0: "), std::string::npos) << none.errors;
}

}  // namespace
}  // namespace heddle
